#include "core/registry/known_as.hpp"

#include <algorithm>
#include <cctype>

namespace hardgrad {
namespace {

std::string plain(const std::string& name) {
  std::string letters;
  for (char c : name)
    if (c != '-' && c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

const std::vector<KnownAs>& known_names() {
  static const std::vector<KnownAs> all = {
      {"BitFlip-1", "bitflip", "Kunes et al. 2022, Gradient estimation for binary latent variables", "the authors' name"},
      {"BNPO", "policy_gradient[preset=bnpo]", "trl, GRPOTrainer", "GRPO's loss, averaged over the words of a batch"},
      {"CISPO", "policy_gradient[preset=cispo]", "MiniMax 2025, MiniMax-M1", "the ratio of a word is a truncated constant"},
      {"Concrete", "gumbel_softmax", "Maddison, Mnih & Teh 2017, The concrete distribution", "the same relaxation"},
      {"CTPO", "policy_gradient[preset=ctpo]", "Zhang et al. 2026, Rethinking importance sampling in LLM policy optimization",
       "the ratio of the words so far, with limits that grow"},
      {"DAPO", "policy_gradient[preset=dapo]", "Yu et al. 2025, DAPO", "two limits of the clip, and the mean of all words"},
      {"Decoupled-ST", "straight_through",
       "Shah, Yan, Mozer & Liu 2024, Improving discrete optimisation via decoupled straight-through estimator",
       "forward_temperature is used for sampling, temperature in the backward pass"},
      {"DPPO", "policy_gradient[preset=dppo]", "Qi et al. 2026, Rethinking the trust region in LLM reinforcement learning",
       "words whose probability has moved too far are left out"},
      {"Dr-GRPO", "group_normalised[scale=none]", "Liu et al. 2025, Understanding R1-Zero-like training",
       "GRPO done right: the group's losses are centred, not divided by their std"},
      {"Entmax", "sparsemax[alpha=1.5]", "Peters, Niculae & Martins 2019, Sparse sequence-to-sequence models",
       "sparsemax is the entmax of alpha = 2"},
      {"GMPO", "policy_gradient[preset=gmpo]", "Zhao et al. 2025, Geometric-mean policy optimization",
       "the geometric mean of clipped ratios of words"},
      {"GPG", "policy_gradient[preset=gpg]", "Chu et al. 2025, GPG", "no ratio, centred rewards"},
      {"GRPO", "group_normalised", "Shao et al. 2024, DeepSeekMath",
       "the authors' short name: group relative policy optimisation"},
      {"GSPO", "policy_gradient[preset=gspo]", "Zheng et al. 2025, Group sequence policy optimization",
       "the geometric mean of the ratios of a sequence"},
      {"Hard-threshold", "path_only[hard_threshold=true]",
       "Bengio, Leonard & Courville 2013, Estimating or propagating gradients",
       "a unit whose derivative is 0, as that of argmax"},
      {"I-MLE", "implicit_mle", "Niepert, Minervini & Franceschi 2021, Implicit MLE", "the authors' short name"},
      {"IndeCateR", "local_expectation",
       "De Smet, Sansone & Zuidberg Dos Martires 2023, Differentiable sampling of categorical "
       "distributions using the CatLog-derivative trick",
       "each choice in turn is enumerated, the others are sampled"},
      {"IWAE", "iwae_reinforce", "Burda, Grosse & Salakhutdinov 2016, Importance weighted autoencoders",
       "the same bound, with the score function instead of reparameterisation"},
      {"JSPO", "james_stein", "Zeng, Zhou, Arora & Zanette 2025, Shrinking the variance",
       "the name in the authors' code: James-Stein policy optimisation"},
      {"LEG", "local_expectation", "Titsias & Lazaro-Gredilla 2015, Local expectation gradients", "the authors' short name"},
      {"Likelihood-ratio", "reinforce", "Glynn 1990, Likelihood ratio gradient estimation",
       "another name of the score function"},
      {"LOORF", "rloo", "Dong, Mnih & Tucker 2020, DisARM", "leave-one-out REINFORCE"},
      {"LUSPO", "policy_gradient[preset=luspo]", "Length-unbiased sequence policy optimization, 2026",
       "GSPO's loss times the length"},
      {"OPO", "policy_gradient[preset=opo]", "Hao et al. 2025, On-policy RL with optimal reward baseline",
       "rewards weighted by length as baseline"},
      {"ReMax", "self_critic", "Li et al. 2023, ReMax", "the loss of the most probable choices is the baseline"},
      {"Reparameterisation", "pathwise", "Kingma & Welling 2014, Auto-encoding variational Bayes", "another name"},
      {"Rotation-trick", "nearest_code[gradient=rotated]",
       "Fifty et al. 2024, Restructuring vector quantization with the rotation trick", "the authors' name"},
      {"RWS", "wake_wake", "Bornschein & Bengio 2015, Reweighted wake-sleep", "the authors' short name"},
      {"SAPO", "policy_gradient[preset=sapo]", "Gao et al. 2025, Soft adaptive policy optimization",
       "a sigmoid in place of the clip"},
      {"Score-function", "reinforce", "Glynn 1990, Likelihood ratio gradient estimation", "REINFORCE without a baseline"},
      {"SCST", "self_critic", "Rennie et al. 2017, Self-critical sequence training", "the authors' short name"},
      {"SFESS", "rloo", "Wijk, Vinuesa & Azizpour 2025, SFESS: score function estimators for k-subset sampling",
       "where a choice is a subset, the score is that of its exact density"},
      {"STE", "straight_through", "Bengio, Leonard & Courville 2013, Estimating or propagating gradients", "a short name"},
      {"STGS", "st_gumbel", "Jang, Gu & Poole 2017, Categorical reparameterization with Gumbel-softmax", "a short name"},
      {"TOPR", "policy_gradient[preset=topr]", "Le Roux et al. 2025, Tapered off-policy REINFORCE",
       "good samples without a ratio, bad ones with one of at most 1"},
      {"TPO", "policy_gradient[preset=tpo]", "Kaddour 2026, Target policy optimization",
       "the cross entropy of a group to a tilted one"},
      {"U2G", "disarm", "Yin, Ho, Yan, Qian & Zhou 2020, Probabilistic best subset selection by gradient-based optimization",
       "the same estimator, published independently in the same year"},
      {"UnOrd", "unordered_set", "Kool, van Hoof & Welling 2020, Estimating gradients for discrete random variables",
       "the unordered set estimator"},
      {"VESPO", "policy_gradient[preset=vespo]", "Shen et al. 2026, VESPO", "a smooth function of the sequence's ratio"},
      {"VQ", "nearest_code", "Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning",
       "the gradient of the nearest code, copied to the encoder"},
      {"Weak-derivative", "mvd", "Pflug 1989, Sampling derivatives of probabilities", "another name"},
      {"ZGR", "reinmax", "Shekhovtsov 2023, Cold analysis of Rao-Blackwellized straight-through Gumbel-softmax",
       "the zero-temperature limit of Gumbel-Rao, the mean of straight-through and DARN, is ReinMax at temperature 1"},
  };
  return all;
}

const KnownAs* known_as(const std::string& name) {
  const auto& all = known_names();
  const auto position = std::find_if(all.begin(), all.end(), [&](const auto& k) { return plain(k.name) == plain(name); });
  return position == all.end() ? nullptr : &*position;
}

}  // namespace hardgrad
