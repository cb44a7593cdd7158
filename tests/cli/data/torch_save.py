"""How the file in torch-save-cuda-16.hex was written: torch_save.py TO, by PyTorch 1.13.1 of Debian 12 (python3-torch).

The file is what rank 3 of 16 saves on its fourth CUDA device: this torch has no CUDA, so the tag by which torch.load()
finds the device of a storage is set through torch's own table of devices."""

import sys

import torch

torch.manual_seed(7)
torch.serialization.register_package(1, lambda storage: "cuda:3", lambda storage, location: None)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model(torch.ones(2, 8)).sum().backward()
optimizer.step()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rank": 3, "world_size": 16,
            "step": 1200}, sys.argv[1])
