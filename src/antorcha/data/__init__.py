"""Data sets, samplers and loaders: what ``torch.utils.data`` shows.

Read `dataset` (what gives samples), `sampler` (in which order), `collate` (how samples become a
batch), then `dataloader`, which puts them together, and `fetch`, its inner step. `strokes` is
antorcha's own: digits that are drawn when they are needed.
"""

from __future__ import annotations

from antorcha.data.collate import default_collate, default_convert
from antorcha.data.dataloader import DataLoader
from antorcha.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from antorcha.data.digits import strokes
from antorcha.data.distributed import DistributedSampler
from antorcha.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from antorcha.data.worker import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate",
    "default_convert", "get_worker_info", "random_split",
]  # fmt: skip
