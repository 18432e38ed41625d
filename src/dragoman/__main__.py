"""``python -m dragoman`` is ``dragoman``."""

from dragoman.cli.command import main

if __name__ == "__main__":
    main()
