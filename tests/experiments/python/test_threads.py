"""Two threads at every public function that takes a function: the numbers are those of one thread, and no thread waits forever."""

import faulthandler
import importlib
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import hardgrad
from problem import LOGITS

TABLE = np.array([[1.0, -2.0, 0.5], [0.3, 3.0, -1.0], [0.7, 0.1, 2.0]])
SLOPES = np.array([[0.4, -1.1, 0.9], [1.3, 0.2, -0.8]])


@pytest.fixture(autouse=True)
def ended():
    """Threads that wait for each other with the interpreter's lock cannot be interrupted."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def not_sanitized(module):
    """The module, whose own threads the thread sanitizer does not see."""
    if "thread" in os.environ.get("HARDGRAD_SANITIZE", ""):
        pytest.skip(f"not with {module} under the thread sanitizer")
    return pytest.importorskip(module)


def of_options(options):
    return TABLE[options[:, 0], options[:, 1]]


def multilinear(weights):
    """The table between its outcomes, and its derivatives in the weights."""
    first, second = weights[:, 0], weights[:, 1]
    return np.einsum("ri,ij,rj->r", first, TABLE, second), np.stack([second @ TABLE.T, first @ TABLE], axis=1)


def curved(weights):
    """Of products and sums in a fixed order: the bits of NumPy's sines and reductions may depend on where an array is in memory."""
    x = sum(weights[:, d, s] * SLOPES[d, s] for d in range(2) for s in range(3))
    return x * x * x + x * x, (3 * x * x + 2 * x)[:, None, None] * SLOPES


def leave_one_out(of):
    losses = of.losses.reshape(-1, of.samples)
    others = (losses.sum(1, keepdims=True) - losses) / (of.samples - 1)
    return (losses - others).reshape(-1, 1, 1) * (of.one_hot - of.probabilities)


# Exact moments, whose visits are divided among threads.


def test_moments_of_every_estimator_on_weights_are_those_of_the_table():
    relaxed, compared = 0, 0
    for spec in hardgrad.estimators():
        asked = []

        def f(weights):
            asked.append(len(weights))
            return multilinear(weights)

        try:
            theirs = hardgrad.moments(LOGITS, TABLE, spec, cap=1e4)
        except hardgrad.UsageError:
            continue
        ours = hardgrad.moments(LOGITS, f, spec, takes="weights", cap=1e4)
        for name in ("mean", "covariance", "rows"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-11, err_msg=spec)
        compared, relaxed = compared + 1, relaxed + (len(asked) > 1)  # the first call makes the table
    assert compared >= 30 and relaxed >= 10, (compared, relaxed)


MANY = [
    "straight_through[samples=3]",
    "implicit_mle[samples=2]",
    "sparse_mixer[order=2,samples=3]",
    "muprop[samples=3]",
    "reinmax[samples=3]",
]
BIT = np.array([[0.0, 0.7]])


def of_bit(weights):
    x = weights[:, 0, 1]
    return x * x * x - x * x, np.stack([0 * x, 3 * x * x - 2 * x], -1)[:, None]


@pytest.mark.parametrize("spec", MANY)
def test_moments_of_many_outcomes_are_the_same_at_each_call(spec):
    each = [hardgrad.moments(LOGITS, curved, spec, takes="weights") for _ in range(20)]
    assert each[0].outcomes > 50
    for of in each[1:]:
        assert np.array_equal(of.mean, each[0].mean) and np.array_equal(of.covariance, each[0].covariance)


def test_moments_do_not_depend_on_the_number_of_processors():
    program = (
        "import os, sys; os.sched_setaffinity(0, eval(sys.argv[1])); sys.path.insert(0, sys.argv[2]); from test_threads import *; "
        "print([hardgrad.moments(LOGITS, curved, spec, takes='weights').covariance.tobytes().hex() for spec in MANY], "
        "[hardgrad.moments(BIT, of_bit, spec, takes='weights').covariance.tobytes().hex() for spec in ('gumbel_softmax', 'st_gumbel')])"
    )
    processors = os.sched_getaffinity(0)
    found = {
        subprocess.run(
            [sys.executable, "-c", program, str(some), os.path.dirname(__file__)], capture_output=True, text=True, check=True
        ).stdout
        for some in (processors, {min(processors)})
    }
    assert len(found) == 1


def test_moments_call_python_in_the_callers_thread_only():
    """Threads would wait for its lock: rebar took 30 times as long on two processors as on one."""
    threads = set()

    def noted(f):
        def called(*given):
            threads.add(threading.get_ident())
            return f(*given)

        return called

    asked = [(LOGITS, curved, spec) for spec in [*MANY, hardgrad.written(noted(leave_one_out), 3)]] + [
        (BIT, of_bit, "gumbel_softmax")
    ]
    for logits, f, spec in asked:
        threads.clear()
        assert hardgrad.moments(logits, noted(f), spec, takes="weights").outcomes > 50
        assert threads == {threading.get_ident()}, spec


# Two threads of the user's.


def arrays(of):
    return [np.asarray(of.value)] + [np.asarray(x) for run in of.runs for x in (run.losses, run.share)]


def calls():
    """For each public function, by name, a use of it by a thread: a function that returns arrays or words."""
    shared = hardgrad.Estimator("rloo[samples=3]")
    return {
        "moments": lambda: [
            hardgrad.moments(LOGITS, of_options, shared).covariance,
            hardgrad.moments(LOGITS, curved, "straight_through[samples=2]", takes="weights").covariance,
        ],
        "gradient": lambda: (
            arrays(hardgrad.gradient(LOGITS, of_options, shared, 3))
            + arrays(hardgrad.gradient(LOGITS, curved, "rebar", 3, takes="weights"))
        ),
        "written": lambda: [hardgrad.moments(LOGITS, of_options, hardgrad.written(leave_one_out, 2)).covariance],
        "test": lambda: [str(hardgrad.test(leave_one_out, 2, first_failure=True))],
    }


def torch_calls():
    torch = not_sanitized("torch")
    import hardgrad.torch as door

    torch.set_num_threads(1)
    slopes = torch.tensor(SLOPES)
    shared = door.Estimator("rloo[samples=3]", door.Site(options=3, columns=2), dtype=torch.double)

    def loss(z, *example):
        x = (z * slopes).sum((1, 2))
        return torch.sin(x) + x**2

    def expected(estimator, seed=None):
        logits = torch.tensor(LOGITS, requires_grad=True)
        value = (
            door.expectation(logits, loss, estimator, seed=seed)
            if isinstance(estimator, str)
            else estimator(logits, loss, seed=seed)
        )
        value.backward()
        return [value.detach().numpy(), logits.grad.numpy()]

    def network(logits):
        def run(e):
            first = e.choose("item", logits)
            second = e.choose("item", logits[first.example] + first.weights[:, 0])
            e.cost(loss(torch.cat([first.weights[second.parent], second.weights], 1)))

        return run

    def in_an_episode(spec, block):
        logits = torch.tensor(LOGITS[:1], requires_grad=True)
        episode = door.episode(1, {"item": door.Site(options=3, times=2)}, spec, dtype=torch.double, seed=4)
        if block:
            with episode as e:
                network(logits)(e)
            value = e.expected_loss
        else:
            value = episode.run(network(logits))
        value.sum().backward()
        return [value.detach().numpy(), logits.grad.numpy()]

    theta = torch.tensor(LOGITS, requires_grad=True)

    def step(estimator):
        return door.expectation(theta, loss, estimator)

    def figures(comparison):
        return [str([comparison[name].variance for name in ("rloo", "rebar")])]

    def monitored():
        monitor = door.Monitor(step, [theta], ["rloo", "rebar"], every=2, replicates=10, warmup=5)
        return figures(monitor(0))

    def reinforce(logits, f):
        law = torch.distributions.OneHotCategorical(logits=logits)
        z = law.sample()
        losses = f(z, torch.arange(len(z)))
        return losses + losses.detach() * law.log_prob(z).sum(-1)

    def of_rewards(logprobs, rewards):
        return -(rewards * logprobs.sum(1)).mean()

    def asserted():
        try:
            return [str(door.assert_unbiased(of_rewards, drift=0.5, longest=2))]
        except AssertionError as error:
            return [str(error)]

    return {
        "torch.policy_loss": lambda: [door.policy_loss(of_rewards, longest=3).mean],
        "torch.assert_unbiased": asserted,
        "torch.expectation": lambda: (
            expected("rloo[samples=4]", 5) + expected("muprop", 5) + expected("straight_through[samples=2]", 5)
        ),
        "torch.Estimator.forward": lambda: expected(shared, 6),
        "torch.Episode.run": lambda: in_an_episode("rloo[samples=3]", False) + in_an_episode("gumbel_softmax", False),
        "torch.episode": lambda: in_an_episode("rloo[samples=3]", True) + in_an_episode("gumbel_softmax", True),
        "torch.compare": lambda: figures(door.compare(step, [theta], ["rloo", "rebar"], replicates=10, warmup=5)),
        "torch.Monitor": monitored,
        "torch.test": lambda: [str(door.test(reinforce, first_failure=True))],
    }


def jax_calls():
    jax = not_sanitized("jax")
    import jax.numpy as jnp
    import hardgrad.jax as door

    def loss(z):
        x = (z * jnp.asarray(SLOPES)).sum((1, 2))
        return jnp.sin(x) + x**2

    def step(logits, estimator, seed):
        return door.expectation(logits, loss, estimator, seed=seed)

    def compared():
        of = door.compare(step, jnp.asarray(LOGITS), ["rloo", "unordered_set"], replicates=10)
        return [str([(of[name].variance, of[name].rows) for name in ("rloo", "unordered_set")])]

    return {"jax.expectation": lambda: [np.asarray(jax.grad(step)(jnp.asarray(LOGITS), "rloo", 7))], "jax.compare": compared}


def taking_a_function(module):
    """Names of the module's public functions, and methods of its classes, with a parameter that is a function."""

    def takes(of):
        return any(
            re.search("Callable|Function|Loss|Step|Estimators", str(p.annotation)) or p.name in ("f", "network")
            for p in inspect.signature(of).parameters.values()
        )

    found = set()
    for name in importlib.import_module(module).__all__:
        value = getattr(sys.modules[module], name)
        if inspect.isfunction(value):
            found |= {name} if takes(value) else set()
        elif inspect.isclass(value) and value.__module__.startswith("hardgrad.") and not issubclass(value, Exception):
            own = {
                key: method
                for key, method in vars(value).items()
                if inspect.isfunction(method) and (key == "__init__" or key[0] != "_")
            }
            found |= {name if key == "__init__" else f"{name}.{key}" for key, method in own.items() if takes(method)}
    return found


@pytest.mark.parametrize(
    "module, its_calls, fewest", [("hardgrad", calls, 4), ("hardgrad.torch", torch_calls, 6), ("hardgrad.jax", jax_calls, 2)]
)
def test_two_threads_get_what_one_gets(module, its_calls, fewest):
    table = its_calls()
    prefix = module.removeprefix("hardgrad").removeprefix(".")
    taking = {f"{prefix}.{name}".removeprefix(".") for name in taking_a_function(module)}
    assert len(taking) >= fewest and taking <= table.keys(), taking - table.keys()
    for name, call in table.items():
        alone = call()
        found, barrier = [[], []], threading.Barrier(2)

        def work(place):
            barrier.wait()
            for _ in range(1 if name.endswith("test") else 3 if name.endswith(("compare", "Monitor")) else 20):
                found[place].append(call())

        threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found[0]) == len(found[1]) >= 1, name  # otherwise one has raised
        for result in found[0] + found[1]:
            assert all(np.array_equal(a, b) for a, b in zip(result, alone, strict=True)), name


# Forks and signals at the same functions.


def in_a_child(call):
    """The results of the call in a forked process; its status if that ends otherwise."""
    end, start = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.alarm(1800)  # it would wait forever for a lock that another thread of its parent held
            os.write(start, pickle.dumps([np.asarray(x) for x in call()]))
        finally:
            os._exit(0)
    os.close(start)
    with os.fdopen(end, "rb") as file:
        found = file.read()
    status = os.waitpid(child, 0)[1]
    return pickle.loads(found) if found else f"status {status}"


FORKED = [("hardgrad", calls), ("hardgrad.torch", torch_calls)]  # JAX forbids forks


@pytest.mark.parametrize("module, its_calls", FORKED)
def test_a_forked_process_gets_what_its_parent_gets(module, its_calls):
    """It was used before."""
    forked = 0
    for name, call in its_calls().items():
        alone = call()
        result = in_a_child(call)
        assert not isinstance(result, str), (name, result)
        assert all(np.array_equal(a, b) for a, b in zip(result, alone, strict=True)), name
        forked += 1
    assert forked >= 4


def test_a_fork_while_other_threads_draw():
    """Without PyTorch, whose own locks another thread may hold."""
    table, ending, begun = calls(), threading.Event(), threading.Event()
    alone = {name: call() for name, call in table.items()}
    kept = [name for name in table if name != "test"]

    def work():
        while not ending.is_set():
            for name in kept:
                table[name]()
                begun.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait()
    try:
        for name in kept:
            result = in_a_child(table[name])
            assert not isinstance(result, str), (name, result)
            assert all(np.array_equal(a, b) for a, b in zip(result, alone[name], strict=True)), name
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    assert len(kept) >= 3


@pytest.mark.parametrize("module, its_calls", FORKED)
def test_ctrl_c_is_passed_on_by_every_function(module, its_calls):
    """It arrives at the first call of a function of this file, the loss or the network, from within the package."""
    stopped = 0
    for name, call in its_calls().items():
        if name == "torch.episode":  # a block, in which the network is the caller's own code
            continue
        asked = threading.Event()

        def watching(frame, event, argument):
            own = frame.f_code.co_filename == __file__
            if event == "call" and own and frame.f_code.co_name not in ("<lambda>", "watching") and not asked.is_set():
                if any(f"{os.sep}hardgrad{os.sep}" in of for of in outer_files(frame)):
                    asked.set()
                    signal.raise_signal(signal.SIGINT)

        sys.setprofile(watching)
        try:
            call()
            ended = "ended"
        except KeyboardInterrupt:
            ended = "interrupted"
        finally:
            sys.setprofile(None)
        assert (asked.is_set(), ended) == (True, "interrupted"), name
        again = call()  # nothing is left locked
        assert len(again) >= 1, name
        stopped += 1
    assert stopped >= 4


def outer_files(frame):
    """Files of the frames around."""
    found = []
    while (frame := frame.f_back) is not None:
        found.append(frame.f_code.co_filename)
    return found


# An estimator that learns, shared by threads.


def in_turns(work, beside):
    """Runs `beside` in another thread while work(pause) calls pause(), at which that thread gets its turn."""
    begun, ended, raised = threading.Event(), threading.Event(), []

    def other():
        begun.wait()
        try:
            beside()
        except BaseException as error:
            raised.append(error)
        ended.set()

    def pause():
        begun.set()
        ended.wait(0.2)  # it may have to wait for this thread

    thread = threading.Thread(target=other)
    thread.start()
    work(pause)
    begun.set()
    thread.join()
    assert not raised, raised


def learning():
    """Logits, an estimator that learns, and a loss."""
    torch = not_sanitized("torch")
    import hardgrad.torch as door

    return (
        torch.tensor(LOGITS, requires_grad=True),
        door.Estimator("nvil", door.Site(options=3, columns=2), dtype=torch.double),
        lambda z: z.sum((1, 2)) + z[:, 0, 0],
    )


def test_a_learning_estimator_is_used_while_its_loss_runs():
    logits, estimator, plain = learning()

    def work(pause):
        def f(z):
            pause()
            return plain(z)

        estimator(logits, f, seed=1).backward()

    tried = 0
    for beside in (
        lambda: estimator.state_dict(),
        lambda: estimator(logits, plain, seed=2).backward(),
        lambda: estimator.core.spec,
        lambda: estimator.load_state_dict(learning()[1].state_dict()),
        lambda: hardgrad.moments(LOGITS, TABLE, estimator.core),
        lambda: hardgrad.gradient(LOGITS, of_options, estimator.core),
    ):
        in_turns(work, beside)
        tried += 1
    assert tried == 6


def test_a_loss_uses_its_own_learning_estimator_beside_another_thread():
    logits, estimator, plain = learning()

    def work(pause):
        def f(z):
            pause()
            return plain(z) + estimator(logits, plain, seed=3).detach()

        estimator(logits, f, seed=1).backward()

    in_turns(work, lambda: [estimator.state_dict(), estimator(logits, plain, seed=2)])


# What ends a call is passed on.


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_a_verdict_is_not_given_after_ctrl_c(raised):
    def estimator(of):
        raise raised("now")

    with pytest.raises(raised, match="now"):
        hardgrad.test(estimator)
    assert hardgrad.test(leave_one_out, 2, first_failure=True).passed


@pytest.mark.parametrize("estimator", ["rebar", leave_one_out])
def test_ctrl_c_ends_a_test(estimator):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        hardgrad.test(estimator, 2, full=True) if callable(estimator) else hardgrad.test(estimator, full=True)
    timer.join()


def test_a_function_that_tests_itself_is_refused():
    def estimator(of):
        hardgrad.test(estimator)

    verdict = hardgrad.test(estimator, first_failure=True)
    assert not verdict.passed and "called by the estimator that it tests" in str(verdict)


def test_a_fork_while_another_thread_holds_a_learning_estimator():
    """A thread draws, within its loss; the process that is made then draws with the same estimator."""
    logits, estimator, plain = learning()
    tried = []

    def work(pause):
        def f(z):
            pause()
            return plain(z)

        estimator(logits, f, seed=1).backward()

    def beside():
        result = in_a_child(lambda: [hardgrad.gradient(LOGITS, of_options, estimator.core).value])
        tried.append(result)

    in_turns(work, beside)
    assert len(tried) == 1 and not isinstance(tried[0], str) and np.isfinite(tried[0][0]).all(), tried

    def forks(z):  # the thread that holds it makes the process
        tried.append(in_a_child(lambda: [hardgrad.gradient(LOGITS, of_options, estimator.core).value]))
        return plain(z)

    estimator(logits, forks, seed=2).backward()
    assert len(tried) == 2 and not isinstance(tried[1], str), tried
    assert np.isfinite(hardgrad.gradient(LOGITS, of_options, estimator.core).value).all()  # here nothing is left locked
