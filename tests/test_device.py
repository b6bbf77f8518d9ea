import pytest
import torch

from hierindex import loading


@pytest.mark.parametrize(
    ("cuda", "mps", "found"), [(True, False, "cuda"), (False, True, "mps"), (False, False, None)]
)
def test_the_accelerator_is_the_one_that_torch_finds(monkeypatch, cuda, mps, found):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert loading.accelerator() == found


@pytest.mark.parametrize(
    ("platform", "machine", "driver", "may_have"),
    [
        ("linux", "x86_64", False, False),
        ("linux", "x86_64", True, True),
        ("darwin", "x86_64", False, False),
        ("darwin", "arm64", False, True),
        ("win32", "AMD64", False, True),
    ],
)
def test_torch_is_asked_only_where_there_may_be_an_accelerator(
    monkeypatch, tmp_path, platform, machine, driver, may_have
):
    monkeypatch.setattr(loading, "DRIVERS", (str(tmp_path / ("." if driver else "none")),))
    monkeypatch.setattr(loading.sys, "platform", platform)
    monkeypatch.setattr(loading.platform, "machine", lambda: machine)
    assert loading._may_have_one() == may_have


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
    assert loading.fastest_dtype(name) == dtype
