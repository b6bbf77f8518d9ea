"""A batch of OpenAI's Batch API: its states, what is said of it, and which lines are errors."""

from dataclasses import dataclass
from typing import Any

ENDPOINTS = {"/v1/chat/completions", "/v1/completions", "/v1/responses"}
OVER = {"completed", "failed", "expired", "cancelled"}
TIMED = [*OVER, "in_progress", "finalizing", "cancelling"]  # states whose beginning is told


@dataclass(frozen=True)
class Plan:
    """What becomes of a batch: its state at each look, and how many of its lines are done."""

    states: tuple[str, ...] = ("validating", "in_progress", "finalizing", "completed")
    n_done: int | None = None  # all


FAILED = Plan(("validating", "failed"))


class Batch:
    """A batch with its lines, which are answered when it ends."""

    def __init__(
        self, number: int, plan: Plan, asked: dict[str, Any], lines: list[dict], created_at: int
    ) -> None:
        self.plan, self.asked, self.lines, self.n_looks = plan, asked, lines, 0
        self.id, self.created_at = f"batch_{number}", created_at
        self.files: dict[str, str | None] = {"output_file_id": None, "error_file_id": None}
        self.errors: list[dict] = []
        self.n_failed = 0  # lines

    @property
    def status(self) -> str:
        return self.plan.states[min(self.n_looks, len(self.plan.states) - 1)]

    @property
    def n_done(self) -> int:
        return len(self.lines) if self.plan.n_done is None else self.plan.n_done

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    def to_json(self) -> dict[str, Any]:
        status = self.status
        is_begun = status not in ("validating", "failed")
        counts = {"total": len(self.lines) if is_begun else 0, "completed": 0, "failed": 0}
        if any(self.files.values()) or status in ("finalizing", "completed"):
            counts |= {"completed": self.n_done - self.n_failed, "failed": self.n_failed}
        reached = self.plan.states[: self.n_looks + 1]
        failed = {"errors": {"object": "list", "data": self.errors}} if status == "failed" else {}
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.asked["endpoint"],
            "errors": None,
            "input_file_id": self.asked["input_file_id"],
            "completion_window": "24h",
            "model": self.lines[0]["body"]["model"],
            "usage": None,
            "status": status,
            "created_at": self.created_at,
            "expires_at": self.created_at + 86_400,
            "request_counts": counts,
            "metadata": self.asked.get("metadata"),
            **{f"{state}_at": self.created_at if state in reached else None for state in TIMED},
            **self.files,
            **failed,
        }


def line_errors(lines: list[dict], endpoint: str):
    """Yield what the service says of lines that it rejects."""
    seen = set()
    for number, line in enumerate(lines, 1):
        if line["custom_id"] in seen or len(line["custom_id"]) > 64:
            yield error("duplicate_custom_id", "The custom_id is used before.", number)
        if (line["method"], line["url"]) != ("POST", endpoint):
            yield error("mismatched_url", "The url does not match the endpoint.", number)
        if line["body"]["model"] == "unknown":
            yield error("model_not_found", "The model is not supported in batches.", number)
        seen.add(line["custom_id"])


def error(code: str, message: str, line: int | None = None) -> dict[str, Any]:
    return {"line": line, "code": code, "message": message, "param": None}
