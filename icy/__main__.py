"""`python -m icy`, the same as the command `icy`."""

from icy.cli import main

if __name__ == "__main__":
    main(prog_name="icy")
