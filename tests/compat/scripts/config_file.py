"""A training loop with config.json in the working directory, as upstream's manual shows it."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F

from msprobe.pytorch import PrecisionDebugger, seed_all

with open("config.json", "w") as file:
    json.dump({"task": "tensor", "dump_path": "./dump", "rank": [], "step": [1], "level": "mix",
               "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, file)

seed_all(seed=7, mode=True)
debugger = PrecisionDebugger("./config.json")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    debugger.start(model=model)
    loss = model(torch.randn(3, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()
