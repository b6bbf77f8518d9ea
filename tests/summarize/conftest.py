import huggingface_hub.constants
import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_torch_thread():
    """Tiny models are many times slower on threads that wait for a busy core."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
