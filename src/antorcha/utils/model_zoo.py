"""``torch.utils.model_zoo``: the older name of ``torch.hub.load_state_dict_from_url``."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.hub import load_state_dict_from_url, tqdm

load_url = load_state_dict_from_url
__all__ = ["load_url", "tqdm"]

explain_missing("torch.utils.model_zoo", globals())
