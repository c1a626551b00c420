"""docs/pipelines.md names what there is; its pipeline and the example's can be planned. tests/interop runs both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logkernel.plugins.spark.pipelines import plan as plans
from logkernel.plugins.spark.pipelines import queries, spec

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text()
(PIPELINE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", [PIPELINE, (ROOT / "examples/flights/pipeline.yaml").read_text()])
def test_the_pipelines_are_planned(text: str) -> None:
    steps = plans.plan(spec.read(text, "pipeline.yaml", {}))
    assert {step.kind for step in steps} >= {"stream", "compact", "audit"}


def test_every_name_is_on_the_page() -> None:
    own = {*spec.SECTIONS, *spec.STEP, *spec.READ_TABLE, *spec.WRITE_TABLE, *spec.WRITE_LOG, *spec.PLACE}
    own |= {"watermark", "identity", "includeHeaders", "fail.on", *plans.MODES, *plans.FAIL_ON, *plans.READABLE}
    own |= {plans.AVAILABLE, *plans._SUBSCRIPTIONS}
    for name in sorted(own):
        assert re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", PAGE), name


def test_every_column_of_an_audit_is_on_the_page() -> None:
    sql = queries.audit("", False)
    told = set(re.findall(r"AS (\w+)", sql[sql.rindex("SELECT topic") :])) - {"DECIMAL", "STRING"}
    assert len(told) >= 12
    for name in told:
        assert f"`{name}`" in PAGE, name


def test_links_lead_somewhere() -> None:
    for page in ("docs/pipelines.md", "examples/flights/README.md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
