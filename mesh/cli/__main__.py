from mesh.cli import main

main()
