from tests.redis.turn_stage import stage as stage
from tests.redis.turn_stage import twilio as twilio
