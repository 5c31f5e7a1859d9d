# One image for every process of the mesh; docker-compose.yml says which command is which.
# Without the embedded parts (one of them is GPL) and the development tools: requirements.production.lock has neither.

FROM python:3.12-slim-bookworm AS build
WORKDIR /app
COPY requirements.production.lock ./
# wheels only, so that nothing needs a compiler
RUN python -m venv /venv \
    && /venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check --only-binary :all: \
       --require-hashes -r requirements.production.lock
COPY mesh mesh
COPY agents agents
COPY config config
# compiled here: the file system is read-only where it runs, and each start would compile it all again
RUN /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash mesh agents

FROM python:3.12-slim-bookworm
RUN groupadd --gid 10001 adiyan \
    && useradd --uid 10001 --gid adiyan --home-dir /var/lib/adiyan --no-create-home --shell /usr/sbin/nologin adiyan \
    && install --directory --owner adiyan --group adiyan --mode 0700 /var/lib/adiyan \
    && printf '#!/bin/sh\nexec python -m mesh.cli "$@"\n' >/usr/local/bin/adiyan \
    && chmod 0755 /usr/local/bin/adiyan
ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    ADIYAN_HOME=/var/lib/adiyan \
    HOME=/tmp
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
USER adiyan
ENTRYPOINT ["adiyan"]
CMD ["--help"]
