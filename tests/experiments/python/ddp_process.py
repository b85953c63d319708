"""One process of test_distributed.py: ddp_process.py RANK FOLDER. Writes the gradients of several ways to draw to FOLDER/RANK.pt."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hardgrad.torch import Estimator, Site, expectation

RANKS, E = 2, 6  # processes, examples of all together
X = torch.randn(E, 3, generator=torch.Generator().manual_seed(0))


class Network(torch.nn.Module):
    """A layer chooses two bits for each example. ids: the numbers of the examples."""

    def __init__(self, estimator="rloo[samples=2]"):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.layer, self.out = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
        for x in self.parameters():
            x.data = torch.randn(x.shape, generator=generator)
        self.estimator = estimator

    def forward(self, ids, seed=None):
        return expectation(
            self.layer(X[ids]),
            lambda z, example: (self.out(z)[:, 0] - X[ids][example, 0]) ** 2,
            self.estimator,
            bits=True,
            ids=ids.numpy(),
            seed=seed,
        ).mean()


def gradients(network, *given):
    network.zero_grad()
    network(*given).backward()
    return [x.grad.clone() for x in network.parameters() if x.requires_grad]


#: Estimators with averages, and those with parameters, too.
AVERAGING = "moving_baseline", "nvil[samples=2]", "rebar"


def averaging(spec, **named):
    return Network(Estimator(spec, Site(options=2, columns=2), learning_rate=None, **named))


def trained(network, estimator, ids):
    """The averages after each of three steps, and the parameters of the network after them."""
    sgd, found = torch.optim.SGD(network.parameters(), 0.1), []
    for seed in range(3):
        gradients(network, ids, seed)
        sgd.step()
        found.append(estimator.get_extra_state()["averages"])
    return found + [x.detach() for x in network.parameters()]


def main(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=RANKS)
    mine, found = torch.arange(E).chunk(RANKS)[rank], {}
    network = DistributedDataParallel(Network())
    found["parts of a batch"] = gradients(network, mine, 5)
    torch.manual_seed(7)
    found["equal"] = gradients(network, torch.arange(E))
    torch.manual_seed(7 + rank)
    found["different"] = gradients(network, torch.arange(E))
    for spec in ("straight_through", "rebar"):
        found[spec] = gradients(DistributedDataParallel(Network(spec)), mine, 5)
    learner = Network(Estimator("nvil[samples=2]", Site(options=2, columns=2), learning_rate=None))
    network = DistributedDataParallel(learner)
    sgd = torch.optim.SGD(network.parameters(), 0.1)
    for seed in range(3):
        gradients(network, mine, seed)
        sgd.step()
    found["learned"] = [x.detach() for x in learner.estimator.parameters()]
    for spec in AVERAGING:
        network = DistributedDataParallel(learner := averaging(spec))
        found[f"averages of {spec}"] = trained(network, learner.estimator, mine)
    network = DistributedDataParallel(learner := averaging(AVERAGING[0], process_group=False))
    found["own averages"] = trained(network, learner.estimator, mine)
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
