"""Draws the pictures of docs/inspector.md: what ``antorcha.inspect`` shows in a notebook.

Needs Chromium on the PATH and Pillow (``pip install pillow``)::

    python tools/draw_inspector.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import antorcha as torch  # noqa: E402
from antorcha.inspector import theme  # noqa: E402

FOLDER = ROOT / "docs" / "img"
PAGE = (
    '<!doctype html><meta charset="utf-8"><body data-theme="{theme}" '
    'style="margin:0;background:{paper}"><div style="width:{width}px;padding:8px">{content}</div>'
)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


def main() -> None:
    """Writes every picture."""
    browser = shutil.which("chromium") or shutil.which("chrome") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("draw_inspector: install Chromium first")
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    grid = torch.arange(24.0).view(4, 6)
    corner = grid.t()[1:4, ::2]
    draw(browser, "inspect_view", torch.inspect(corner).html(), 1110, "light")

    weight = torch.nn.Linear(28, 28).weight
    (weight @ torch.randn(28, 3)).square().sum().backward()
    draw(browser, "inspect_weight", torch.inspect(weight, name="weight").html(), 1110, "dark")

    up, across = torch.meshgrid(torch.linspace(0, 1, 48), torch.linspace(0, 1, 64), indexing="ij")
    photo = torch.stack([across, (up * across * 9).sin().abs(), 1 - up])
    draw(browser, "inspect_narrow", torch.inspect(photo.mul(255).byte()[:, 4:], name="photo",
                                                  axes="CHW").html(), 344, "light")  # fmt: skip
    brief = torch.randn(4, 6, requires_grad=True).exp()._repr_html_()
    draw(browser, "inspect_brief", brief, 440, "light")

    table, other = torch.ones(2, 64, 64).to("sim")
    with torch.sim.recording() as launches:
        table + other.t()
    draw(browser, "inspect_launch", torch.inspect(launches[0]).html(), 1110, "light")


def draw(browser: str, name: str, content: str, width: int, kind: str) -> None:
    """Photographs the page, and cuts off the empty paper below."""
    paper = (theme.DARK if kind == "dark" else theme.LIGHT)["bg"]
    with tempfile.TemporaryDirectory() as folder:
        page, photo = Path(folder) / "page.html", Path(folder) / "page.png"
        page.write_text(
            PAGE.format(theme=kind, paper=paper, width=width, content=content), encoding="utf-8"
        )
        size = f"--window-size={max(width + 16, 500)},3000"
        subprocess.run(
            [browser, *OPTIONS, f"--user-data-dir={folder}/profile", f"--screenshot={photo}", size,
             page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        shown = Image.open(photo).convert("RGB")
    empty = Image.new("RGB", shown.size, paper)
    box = ImageChops.difference(shown, empty).getbbox()
    assert box is not None
    cut = shown.crop((0, 0, width + 16, min(box[3] + 8, shown.height)))
    target = FOLDER / f"{name}.png"
    cut.quantize(256).save(target, optimize=True)
    print(f"{target.relative_to(ROOT)}: {cut.width} x {cut.height}, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
