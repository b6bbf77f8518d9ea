import pytest
import torch

from hierindex.models import load


@pytest.mark.parametrize(
    ("cuda", "mps", "found"), [(True, False, "cuda"), (False, True, "mps"), (False, False, None)]
)
def test_the_accelerator_is_the_one_that_torch_finds(monkeypatch, cuda, mps, found):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert load.accelerator() == found


@pytest.mark.parametrize(
    ("name", "has_bfloat16", "dtype"),
    [
        ("cpu", True, torch.float32),
        ("mps", True, torch.float32),
        ("cuda", False, torch.float32),
        ("cuda", True, torch.bfloat16),
        ("cuda:1", True, torch.bfloat16),
    ],
)
def test_bfloat16_is_for_a_gpu_that_computes_in_it(monkeypatch, name, has_bfloat16, dtype):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    assert load.fastest_dtype(name) == dtype
