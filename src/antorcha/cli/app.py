"""The commands, their options and their help. Each imports what it needs when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from antorcha._version import __version__
from antorcha.core.lazy import lazy

demo_command = lazy("antorcha.cli.demo", before_forks=False)
info_command = lazy("antorcha.cli.info", before_forks=False)
lab_command = lazy("antorcha.cli.lab", before_forks=False)
precompile_command = lazy("antorcha.cli.precompile", before_forks=False)
runner = lazy("antorcha.cli.runner", before_forks=False)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="antorcha: PyTorch's programming model in Python that you can read.",
)


def main(words: Sequence[str]) -> int:
    """Run one command; return its exit code."""
    try:
        app(args=list(words), prog_name="antorcha")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antorcha {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(add_help_option=True)
def run(
    script: Annotated[str, typer.Argument(help="A PyTorch program, or - for standard input.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What the program finds in sys.argv[1:].")
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")
    ] = False,
) -> None:
    """Run an unmodified PyTorch program: its `import torch` gives antorcha.

    Everything after the program's name is passed to it as it stands. Tracebacks and exit codes are
    those of python.
    """
    # `antorcha.cli.main` runs programs before it comes here: this is the help, and the complaint
    # about a missing argument.
    flag = ["-m"] if module else []
    raise typer.Exit(runner.run([*flag, script, *(arguments or [])]))


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    calls: Annotated[
        str | None,
        typer.Option("--calls", metavar="SCRIPT", help="Run SCRIPT; say who served its calls."),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What SCRIPT finds in sys.argv[1:].")
    ] = None,
) -> None:
    """Say what antorcha finds here: versions, CPU, threads, devices, cache."""
    if calls is not None:
        raise typer.Exit(info_command.show_calls([calls, *(arguments or [])], as_json=as_json))
    info_command.show(as_json=as_json)


@app.command()
def precompile(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile what most programs call, ahead, so that their first minute is like any other.

    What is compiled is kept on disk for every later program.
    """
    raise typer.Exit(precompile_command.main(quiet=quiet))


@app.command()
def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 15,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the model.")] = Path(
        "demo-out"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the weights and of the shuffling.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per step.")] = 32,
    device: Annotated[str, typer.Option(help="Where it trains: cpu, cuda, or sim.")] = "cpu",
) -> None:
    """Train a convolutional network on scikit-learn's handwritten digits."""
    raise typer.Exit(
        demo_command.main(epochs=epochs, out=out, seed=seed, batch_size=batch_size, device=device)
    )


@app.command()
def lab(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[LESSON or FILE.py]", help="What opens first.", show_default=False),
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of the page: en or es.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 uses a free one.")] = 0,
    folder: Annotated[
        Path | None, typer.Option(help="Where your work is saved.", show_default="~/antorcha-lab")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|html",
            help="Write the lessons as Jupyter notebooks; html: a lesson or program as one page.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long one run may take.")] = 600,
    memory: Annotated[
        float, typer.Option(min=0, help="GiB that one run may use; 0 is half of the machine's.")
    ] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this computer's are unsafe.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the interactive lessons in a browser: editor, terminal, and the inside of every tensor.

    Programs run on this computer with your rights. Nobody else can reach the page.
    """
    raise typer.Exit(
        lab_command.main(what, lang=lang, port=port, folder=folder, export=export, seconds=seconds,
                         memory=memory, host=host, browser=browser)
    )  # fmt: skip
