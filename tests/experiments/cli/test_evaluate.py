"""hardgrad evaluate: trained networks on their training task and on other data, with greedy and beam search; their alignments."""

import math

import h5py
import pytest

from program import as_json, refusal, run

SWEEP = """
[grid]
task = "translation[examples=60,max_length=4,words=3]"
model = "translator[embedding=4,hidden=4,null=true]"
estimator = ["soft", "rloo[samples=2]", "rloo[samples=2,target=elbo]"]

[train]
steps = 30
learning_rate = 0.05
batch = 8
checkpoint = true
decode = true
"""


def trained(folder, text):
    """The checkpoints of a sweep, by estimator."""
    (folder / "s.toml").write_text(text)
    run("run", folder / "s.toml", "--out", folder / "run")
    run("merge", folder / "run", "--out", folder / "m.h5")
    found = {}
    for path in sorted((folder / "run").rglob("*.checkpoint.h5")):
        found[as_json("evaluate", "--checkpoint", path, "--examples", 1)["estimator"]] = path
    return found


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    return folder, trained(folder, SWEEP)


def test_it_is_what_the_sweep_said_at_its_end(networks):
    folder, checkpoints = networks
    assert len(checkpoints) == 3
    with h5py.File(folder / "m.h5") as f:
        names = [name.decode() for name in f["estimator"][()]]
        for name, path in checkpoints.items():
            got = as_json("evaluate", "--checkpoint", path)
            row = names.index(name)
            assert got["step"] == 30 and got["split"] == "heldout" and got["trained_on"] == got["task"]
            for metric in ("token_accuracy", "bleu", "exact_match_decoded", "alignment_error_rate"):
                assert got["metrics"][metric] == pytest.approx(f[f"metric_{metric}"][row, -1], rel=1e-5), (name, metric)
            loss = "soft" if name == "soft" else "greedy_loss"
            assert got["losses"][loss] == pytest.approx(f[f"heldout_{loss}"][row, -1], rel=1e-5)
            assert f"{got['losses'][loss]:.4f}" in run("evaluate", "--checkpoint", path).stdout


def test_a_sweep_decodes_by_beam_search(tmp_path):
    text = (
        '[grid]\ntask = "translation[examples=400,max_length=4,words=3]"\nmodel = "translator[embedding=4,hidden=4]"\nestimator = "soft"\n'
        '[train]\nsteps = 200\noptimizer = "adam"\nlearning_rate = 0.02\nbatch = 8\ncheckpoint = true\ndecode = true\nbeam = 3\n'
    )
    (path,) = trained(tmp_path, text).values()
    with h5py.File(tmp_path / "m.h5") as f:
        sweep = {m: f[f"metric_{m}"][0, -1] for m in ("bleu", "exact_match_decoded")}
    three, one = (as_json("evaluate", "--checkpoint", path, "--beam", k)["metrics"] for k in (3, 1))
    assert (
        sweep == pytest.approx({m: three[m] for m in sweep}, rel=1e-5)
        and three["exact_match_decoded"] > one["exact_match_decoded"]
    )
    (tmp_path / "s.toml").write_text(text.replace("decode = true", ""))
    assert "train.beam = 3: needs train.decode = true" in refusal("plan", tmp_path / "s.toml")


def test_beam_posterior_and_splits(networks):
    _, checkpoints = networks
    posterior = checkpoints["rloo[samples=2,target=elbo]"]
    prior, other = (
        as_json("evaluate", "--checkpoint", posterior, "--attention", a, "--split", "train") for a in ("prior", "posterior")
    )
    assert prior["losses"]["greedy_loss"] != other["losses"]["greedy_loss"] and prior["examples"] > 40
    beam = as_json("evaluate", "--checkpoint", posterior, "--beam", 3, "--split", "train", "--bound-samples", 5)
    assert beam["beam"] == 3 and math.isfinite(beam["metrics"]["bleu"]) and math.isfinite(beam["losses"]["sampled_bound"])
    assert "learns no posterior" in refusal("evaluate", "--checkpoint", checkpoints["soft"], "--attention", "posterior")


def test_the_exact_posterior_finds_better_choices(networks):
    _, checkpoints = networks
    network = checkpoints["rloo[samples=2]"]
    prior, exact = (
        as_json("evaluate", "--checkpoint", network, "--attention", a, "--split", "train") for a in ("prior", "exact")
    )
    assert exact["losses"]["greedy_loss"] < prior["losses"]["greedy_loss"]
    assert exact["losses"]["marginal_likelihood"] == prior["losses"]["marginal_likelihood"]
    assert "reads weights" in refusal("evaluate", "--checkpoint", checkpoints["soft"], "--attention", "exact")


def test_losses_that_are_no_likelihood_have_neither_a_posterior_nor_a_bound(tmp_path):
    (path,) = trained(
        tmp_path,
        '[grid]\ntask = "features[kind=regimes,features=6]"\nmodel = "router[hidden=2,balance=0.1]"\n'
        'estimator = "rloo"\n[train]\nsteps = 2\ncheckpoint = true\n',
    ).values()
    assert "marginal_likelihood" not in as_json("evaluate", "--checkpoint", path, "--examples", 4)["losses"]
    for option in (("--attention", "exact"), ("--bound-samples", 3)):
        assert "no log likelihoods, with balance above 0" in refusal("evaluate", "--checkpoint", path, *option)


def test_hypotheses_are_the_sentences_that_are_scored(networks, tmp_path):
    _, checkpoints = networks
    path = checkpoints["rloo[samples=2]"]
    for name, lines in (("s", ["the n0 v1", "n2", "the n1 v0"]), ("t", ["N0 V1", "N2", "N1 V0"])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    task = f"translation[data=text,path={tmp_path}/s,target_path={tmp_path}/t,heldout=0,test=0,lower_case=false]"
    arguments = (
        "evaluate",
        "--checkpoint",
        path,
        "--task",
        task,
        "--split",
        "train",
        "--beam",
        3,
        "--hypotheses",
        tmp_path / "h",
    )
    got = as_json(*arguments)
    best = (tmp_path / "h").read_text().splitlines()
    assert len(best) == 3 and got["hypotheses"] == str(tmp_path / "h")
    as_json(*arguments, "--nbest", 2)
    found = [line.split(" ||| ") for line in (tmp_path / "h").read_text().splitlines()]
    for number in range(3):
        mine = [(words, float(log_p)) for n, words, log_p in found if int(n) == number]
        assert 1 <= len(mine) <= 2 and mine[0][0] == best[number] and mine == sorted(mine, key=lambda pair: -pair[1])
    assert len(found) > 3
    (tmp_path / "t").write_text("".join((line or "x") + "\n" for line in best))  # against its own sentences it makes no error
    assert as_json(*arguments)["metrics"]["exact_match_decoded"] == 1
    assert "--nbest 4: needs --beam 4 or more" in refusal(*arguments, "--nbest", 4)
    assert "--nbest 2: needs --hypotheses" in refusal("evaluate", "--checkpoint", path, "--beam", 2, "--nbest", 2)
    assert "exclude each other" in refusal("evaluate", "--checkpoint", path, "--average", 2, "--hypotheses", tmp_path / "h")


def test_sentences_of_a_network_that_picks_several_positions_are_refused_for_that(tmp_path):
    (path,) = trained(
        tmp_path,
        SWEEP.replace("null=true", "picks=2")
        .replace('["soft", "rloo[samples=2]", "rloo[samples=2,target=elbo]"]', '"rloo"')
        .replace("steps = 30", "steps = 1"),
    ).values()
    for option in (("--hypotheses", tmp_path / "h"), ("--beam", 2)):
        assert refusal("evaluate", "--checkpoint", path, *option) == (
            "beam search and hypotheses need choices of one option each; this network's are subsets (picks)"
        )
    assert not (tmp_path / "h").exists()


def test_alignments_and_hypotheses_have_one_order(networks, tmp_path):
    """Line n of each is example n of the data's file, also in a split whose order is another."""
    _, checkpoints = networks
    sources = [" ".join(f"n{(i + j) % 3}" for j in range(1 + i % 3)) + f" v{i % 2}" for i in range(12)]
    (tmp_path / "s").write_text("".join(line + "\n" for line in sources))
    (tmp_path / "t").write_text("".join(line.upper() + "\n" for line in sources))
    task = f"translation[data=text,path={tmp_path}/s,target_path={tmp_path}/t,heldout=0,test=0,lower_case=false]"
    arguments = (
        "evaluate",
        "--checkpoint",
        checkpoints["rloo[samples=2]"],
        "--task",
        task,
        "--split",
        "train",
        "--batch",
        5,
        "--beam",
        40,
        "--hypotheses",
        tmp_path / "h",
        "--nbest",
        40,
    )
    as_json(*arguments, "--alignments", tmp_path / "a")
    assert (tmp_path / "a" / "source.txt").read_text().splitlines() == sources
    assert len((tmp_path / "a" / "links.txt").read_text().splitlines()) == 12
    found = [line.split(" ||| ") for line in (tmp_path / "h").read_text().splitlines()]
    assert {int(number) for number, _, _ in found} == set(range(12)) and len(found) > 12 * 20
    for _, words, log_p in found:
        assert math.isfinite(float(log_p)) and "<bos>" not in words.split() and words == " ".join(words.split()), words


def test_sentences_by_their_probability_summed_over_positions(networks, tmp_path):
    _, checkpoints = networks
    path = checkpoints["rloo[samples=2]"]
    at_mode, summed = (as_json("evaluate", "--checkpoint", path, "--beam", 3, *extra) for extra in ((), ("--sum-choices",)))
    assert summed["losses"] == at_mode["losses"] and summed["sum_choices"] and not at_mode["sum_choices"]
    as_json("evaluate", "--checkpoint", path, "--beam", 3, "--sum-choices", "--hypotheses", tmp_path / "h", "--nbest", 2)
    assert "reads weights" in refusal("evaluate", "--checkpoint", checkpoints["soft"], "--sum-choices")
    assert "exclude each other" in refusal("evaluate", "--checkpoint", path, "--average", 2, "--sum-choices")


def test_averages_over_samples(networks):
    _, checkpoints = networks
    path = checkpoints["rloo[samples=2]"]
    one, eight, again = (as_json("evaluate", "--checkpoint", path, "--average", k, "--split", "train") for k in (1, 8, 8))
    assert eight == again and eight["average"] == 8 and math.isfinite(eight["metrics"]["bleu"])
    assert one["metrics"]["token_accuracy"] == eight["metrics"]["token_accuracy"]  # teacher forcing, no sampled answers
    assert "draws no samples" in refusal("evaluate", "--checkpoint", checkpoints["soft"], "--average", 2)
    assert "--average and --beam exclude each other" in refusal("evaluate", "--checkpoint", path, "--average", 2, "--beam", 2)


def test_other_settings_of_the_network(tmp_path):
    text = (
        '[grid]\ntask = "glimpse[size=8,examples=40,digits=2]"\nmodel = "glimpse_reader[glimpses=1,grid=3,patch=4,hidden=8,features=8]"\n'
        'estimator = "rloo[samples=2]"\n[train]\nsteps = 20\nlearning_rate = 0.05\ncheckpoint = true\n[measure]\nat = []\n'
    )
    (path,) = trained(tmp_path, text).values()
    spec = "glimpse_reader[glimpses={},grid=3,patch=4,hidden=8,features=8]"
    plain, same, more = (
        as_json("evaluate", "--checkpoint", path, *extra)
        for extra in ((), ("--model", spec.format(1)), ("--model", spec.format(3)))
    )
    assert (
        plain == same
        and plain["losses"] != more["losses"]
        and "glimpses=3" in more["model"]
        and more["trained_as"] == plain["model"]
    )
    averaged = as_json("evaluate", "--checkpoint", path, "--average", 5, "--split", "train")
    assert averaged["metrics"]["accuracy"] == 1 - averaged["metrics"]["error_rate"]
    for verb in (("evaluate",), ("measure", "--estimator", "rloo")):
        assert "it was trained as glimpse_reader[" in refusal(
            *verb, "--checkpoint", path, "--model", "glimpse_reader[hidden=9]", status=3
        )
    two = as_json(
        "measure", "--checkpoint", path, "--model", spec.format(3), "--estimator", "rloo", "--batch", 2, "--replicates", 4
    )
    assert "glimpses=3" in two["model"]
    assert "other settings of glimpse_reader" in refusal("evaluate", "--checkpoint", path, "--model", "ponderer")


def test_a_file_of_its_own_and_what_was_attended_to(networks, tmp_path):
    _, checkpoints = networks
    (tmp_path / "s").write_text("the n0 v1\nthe n2 v0 strange\n\nn1\n")
    (tmp_path / "t").write_text("N0 V1\nN2 V0\nx\nN1\n")
    (tmp_path / "l").write_text("1 2 1\n1 3 2 P\n2 2 1 S\n2 0 2\n")
    task = f"translation[data=text,path={tmp_path}/s,target_path={tmp_path}/t,links={tmp_path}/l,heldout=0,test=0]"
    got = as_json(
        "evaluate", "--checkpoint", checkpoints["soft"], "--task", task, "--split", "train", "--alignments", tmp_path / "a"
    )
    assert got["examples"] == 3 and got["task"] != got["trained_on"]
    lines = {name: (tmp_path / "a" / f"{name}.txt").read_text().split("\n") for name in ("source", "target", "links", "gold")}
    assert sorted(lines["source"]) == ["", "n1", "the n0 v1", "the n2 v0 <unk>"]
    assert {len(text) for text in lines.values()} == {4}
    wrong = all_links = 0
    for source, target, links, gold in zip(*lines.values()):
        found = {tuple(map(int, link.split("-"))) for link in links.split()}
        assert len(found) <= len(target.split()) and all(i < len(source.split()) and j < len(target.split()) for i, j in found)
        if source.endswith("v1"):
            assert gold == "1-0 2?1"
        sure = {tuple(map(int, link.split("-"))) for link in gold.split() if "-" in link}
        possible = sure | {tuple(map(int, link.split("?"))) for link in gold.split() if "?" in link}
        if possible:
            wrong += len(found) + len(sure) - len(found & sure) - len(found & possible)
            all_links += len(found) + len(sure)
    assert got["metrics"]["alignment_error_rate"] == pytest.approx(wrong / all_links)
    measured = as_json(
        "measure", "--checkpoint", checkpoints["soft"], "--task", task, "--estimator", "soft", "--batch", 3, "--replicates", 8
    )
    assert measured["task"] == got["task"] and measured["batch"] == 3
    run(
        "gradient",
        "--checkpoint",
        checkpoints["soft"],
        "--task",
        task,
        "--estimator",
        "soft",
        "--batch",
        3,
        "--out",
        tmp_path / "g.h5",
    )
    with h5py.File(tmp_path / "g.h5") as f:  # of these sentences, not of the training sentences
        assert f.attrs["task"] == got["task"]


def test_what_does_not_fit_is_one_line(networks, tmp_path):
    _, checkpoints = networks
    path = checkpoints["soft"]
    assert "trained on translation[" in refusal("evaluate", "--checkpoint", path, "--task", "bits")
    assert "has no examples there" in refusal("evaluate", "--checkpoint", path, "--task", "translation[heldout=0]")
    assert "--checkpoint is required" in refusal("evaluate")
    assert "no such file" in refusal(
        "evaluate", "--checkpoint", path, "--task", "translation[data=tatoeba,path=/none]", status=3
    )
    bad = tmp_path / "bad.h5"
    bad.write_bytes(path.read_bytes()[:5000])
    assert "bad.h5" in refusal("evaluate", "--checkpoint", bad, status=3)
    (tmp_path / "file").write_text("")
    assert "cannot be created" in refusal("evaluate", "--checkpoint", path, "--alignments", tmp_path / "file" / "a")
    pairs = (
        '[grid]\ntask = "pairs[kind=phrase,words=2,examples=40]"\nmodel = "sentence_pair[width=3]"\nestimator = "soft"\n'
        "[train]\nsteps = 1\ncheckpoint = true\n"
    )
    (network,) = trained(tmp_path, pairs).values()
    got = as_json("evaluate", "--checkpoint", network, "--task", "pairs[kind=phrase,words=2,examples=40]", "--split", "train")
    assert 0 <= got["metrics"]["accuracy"] <= 1
    assert "--beam 3: beam search needs sentences" in refusal(
        "evaluate", "--checkpoint", network, "--beam", 3, "--split", "train"
    )
    other = as_json("evaluate", "--checkpoint", network, "--task", "pairs[kind=phrase,words=5,examples=90]")
    assert 0 <= other["metrics"]["accuracy"] <= 1  # other words, most of them unknown
    (tmp_path / "pairs.tsv").write_text("maybe\ta0\ta0\n")
    refused = refusal("evaluate", "--checkpoint", network, "--task", f"pairs[path={tmp_path / 'pairs.tsv'}]", status=3)
    assert '"maybe" is a label that the network cannot give' in refused
    assert "--alignments needs a network that attends to a source word" in refusal(
        "evaluate", "--checkpoint", network, "--alignments", tmp_path / "a"
    )


def test_stories_of_another_world(tmp_path):
    sweep = (
        '[grid]\ntask = "qa[stories=30,people=4,places=4]"\nmodel = "memory_reader[embedding=3,hops=1]"\nestimator = "soft"\n'
        "[train]\nsteps = 1\ncheckpoint = true\n"
    )
    (network,) = trained(tmp_path, sweep).values()
    fewer = as_json("evaluate", "--checkpoint", network, "--task", "qa[stories=9,people=2,places=3]", "--split", "train")
    assert fewer["examples"] > 20 and math.isfinite(fewer["losses"]["soft"])
    more = refusal("evaluate", "--checkpoint", network, "--task", "qa[stories=9,places=8]", "--split", "train", status=3)
    assert "is an answer that the network cannot give" in more
