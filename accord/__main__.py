"""`python -m accord`: the command line, for launchers that start Python modules, such as torchrun."""

from accord.app.cli import main

if __name__ == "__main__":
    main()
