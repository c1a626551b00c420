"""Draws what the pipeline found: mean departure delays by week, of each airport's largest carriers.

python examples/flights/chart.py out/delays delays.svg
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from datetime import date

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "logkernel"
matplotlib.rcParams["svg.fonttype"] = "none"
from matplotlib import pyplot  # noqa: E402

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
COLOURS = {
    "UA": "#1f6fb4", "B6": "#d1711f", "EV": "#2f8f4e", "DL": "#a63a4f", "AA": "#7a5aa6", "MQ": "#7d6b4f",
    "9E": "#3a9aa0", "WN": "#b08a1e", "US": "#666f7a",
}  # fmt: skip
CARRIERS = 3


def rows(folder: str) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    found: list[dict[str, object]] = pq.read_table(folder).to_pylist()
    return found


def draw(folder: str, path: str) -> None:
    minutes: dict[tuple[str, str, int], int] = defaultdict(int)
    departed: Counter[tuple[str, str, int]] = Counter()
    for row in rows(folder):
        week = (date.fromisoformat(str(row["day"])) - date(2013, 1, 1)).days // 7
        for carrier in (row["carrier"], "all"):
            place = str(row["origin"]), str(carrier), week
            minutes[place] += int(str(row["delay_min"]))
            departed[place] += int(str(row["departed"]))
    figure, panels = pyplot.subplots(3, 1, figsize=(8, 7.2), sharex=True, sharey=True)
    for panel, (airport, name) in zip(panels, AIRPORTS.items(), strict=True):
        flown: Counter[str] = Counter()
        for (origin, carrier, _), count in departed.items():
            if origin == airport and carrier != "all":
                flown[carrier] += count
        for carrier in [*(carrier for carrier, _ in flown.most_common(CARRIERS)), "all"]:
            weeks = sorted(week for origin, one, week in departed if (origin, one) == (airport, carrier))
            weeks = [week for week in weeks if departed[airport, carrier, week]]
            means = [minutes[airport, carrier, week] / departed[airport, carrier, week] for week in weeks]
            colour = COLOURS.get(carrier, "#222222")
            label = "all carriers" if carrier == "all" else carrier
            panel.plot(weeks, means, color=colour, linewidth=2.2 if carrier == "all" else 1.2, label=label)
        panel.set_title(f"{name} ({airport})", loc="left", fontsize=10)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.grid(axis="y", color="#e2e2e2", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    panels[1].set_ylabel("mean departure delay, minutes")
    panels[-1].set_xlabel("week of 2013")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2])
