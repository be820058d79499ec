"""What shares memory and what does not: storage, offset, strides, versions.

    antorcha run examples/views_and_strides.py

A tensor is a storage (a row of numbers in memory) and three things that say how to read it: the
offset of the first element, the shape, and the strides (how far it is to the next element of each
dim). A view is another way to read the same storage.
"""

import torch


def show(what, t, base):
    shared = t.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    print(f"{what:24} shape {tuple(t.shape)!s:10} strides {t.stride()!s:10} "
          f"offset {t.storage_offset()}  {'shares' if shared else 'copy'}")  # fmt: skip
    return shared


def main():
    base = torch.arange(12)
    grid = base.view(3, 4)
    claims = [
        show("grid = base.view(3, 4)", grid, base),
        show("grid.t()", grid.t(), base),
        show("grid[1]", grid[1], base),
        show("grid[:, 1:3]", grid[:, 1:3], base),
        show("grid[::2]", grid[::2], base),
        show("grid[None]", grid[None], base),
        show("base[:4].expand(3, 4)", base[:4].expand(3, 4), base),
        show("grid.reshape(2, 6)", grid.reshape(2, 6), base),
        show("grid.contiguous()", grid.contiguous(), base),
        not show("grid.t().reshape(12)", grid.t().reshape(12), base),
        not show("grid.t().contiguous()", grid.t().contiguous(), base),
        not show("grid[[0, 2]]", grid[[0, 2]], base),
        not show("grid[grid > 5]", grid[grid > 5], base),
        not show("grid.clone()", grid.clone(), base),
        not show("grid + 0", grid + 0, base),
    ]

    # Element [i, j] is at offset + i * stride[0] + j * stride[1] of the storage: nothing else.
    window = grid.t()[1:3]
    at = window.storage_offset() + 1 * window.stride(0) + 2 * window.stride(1)
    claims.append(window[1, 2].item() == base[at].item())

    # A write through one view is seen through all, and counts as a write to the storage.
    before = base._version
    grid[1].mul_(10)
    print("base after grid[1].mul_(10):", base.tolist())
    claims += [base[4:8].tolist() == [40, 50, 60, 70], base._version > before]

    # as_strided says all three by hand: overlapping windows without a copy.
    windows = torch.arange(6).as_strided((4, 3), (1, 1))
    print("windows:", windows.tolist())
    claims.append(windows[0, 1].data_ptr() == windows[1, 0].data_ptr())

    # What cannot be read with strides alone must be copied, and view refuses to.
    try:
        grid.t().view(12)
    except RuntimeError as error:
        print("view refuses:", error)
        claims.append(True)

    # NumPy arrays share memory, both ways.
    array = base.numpy()
    array[0] = -1
    claims.append(base[0].item() == -1)
    print(f"{sum(claims)} of {len(claims)} claims hold")


if __name__ == "__main__":
    main()
