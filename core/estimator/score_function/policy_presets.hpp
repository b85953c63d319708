// Published methods of fine-tuning sequence models, as settings of policy_gradient.
#pragma once

#include <vector>

#include "core/estimator/estimator.hpp"

namespace hardgrad {

inline const std::vector<Preset> policy_presets = {
    {"cispo", "advantage=group_std,ratio=token,bound=truncate,low=0,high=1.2,aggregation=tokens",
     "MiniMax 2025, MiniMax-M1, eq. 4-5 (no lower limit; its upper limit is not given)"},
    {"dapo", "advantage=group_std,ratio=token,bound=clip,low=0.8,high=1.28,aggregation=tokens",
     "Yu et al. 2025, DAPO, eq. 8, with the limits of sec. 4.1 (without dynamic sampling)"},
    {"dr_grpo", "advantage=group_mean,ratio=token,bound=clip,aggregation=longest",
     "Liu et al. 2025, Understanding R1-Zero-like training, sec. 3.2"},
    {"gpg", "advantage=group_mean,ratio=none,aggregation=tokens",
     "Chu et al. 2025, GPG (without its correction for groups of equal rewards)"},
    {"grpo", "advantage=group_std,ratio=token,bound=clip,aggregation=sequences,divergence=k3,where=loss",
     "Shao et al. 2024, DeepSeekMath, eq. 3-4 (sec. 4.1; beta = 0.04 there)"},
    {"gspo", "advantage=group_std,ratio=geometric,bound=clip,low=0.9997,high=1.0004,aggregation=sequences",
     "Zheng et al. 2025, Group sequence policy optimization, eq. 5-7, with the limits of sec. 5.1"},
    {"maxrl", "advantage=relative,ratio=none", "Tajwar et al. 2026, Maximum likelihood reinforcement learning"},
    {"mis", "advantage=group_mean,ratio=sequence,bound=mask,low=0,high=2",
     "Liu et al. 2025, When speed kills stability (masked importance sampling)"},
    {"opo", "advantage=length_weighted,ratio=none", "Hao et al. 2025, On-policy RL with optimal reward baseline"},
    {"ppo", "advantage=critic,lambda=0.95,ratio=token,bound=clip,aggregation=tokens",
     "Schulman et al. 2017, Proximal policy optimization, eq. 7 and 11-12 (lambda is a setting there)"},
    {"reinforce_pp", "advantage=batch_std,ratio=token,bound=clip,aggregation=tokens,divergence=k1,reward_to_go=true",
     "Hu et al. 2025, REINFORCE++ (without baseline)"},
    {"remax", "advantage=greedy,ratio=none", "Li et al. 2024, ReMax; Rennie et al. 2017, self-critical training"},
    {"rloo", "advantage=leave_one_out,ratio=sequence,bound=clip,divergence=k1",
     "Ahmadian et al. 2024, Back to basics (on policy; trl clips the ratio)"},
    {"tis", "advantage=group_mean,ratio=token,bound=truncate,low=0,high=2",
     "Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL training"},
};

}  // namespace hardgrad
