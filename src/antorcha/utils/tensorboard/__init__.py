"""``torch.utils.tensorboard``: what a training run reports, for TensorBoard to show.

Needs the package tensorboard (``pip install antorcha[tensorboard]``), whose own writer writes the
files; images need pillow, figures matplotlib.

See https://docs.pytorch.org/docs/stable/tensorboard.html.
"""

from tensorboard.summary.writer.record_writer import RecordWriter

from antorcha.errors import explain_missing
from antorcha.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]

explain_missing("torch.utils.tensorboard", globals())
