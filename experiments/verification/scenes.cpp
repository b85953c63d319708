#include "experiments/verification/scenes.hpp"

#include <numeric>

namespace hardgrad::verification {

// Small enough for the exact gradient, so that the bias is a counter, too.
const std::vector<SceneSpec>& scene_specs() {
  static const std::vector<SceneSpec> all = {
      {"bits", "bits", "bits[bits=3,t=0.6;0.51;0.48,shared_logit=true]", 1},
      {"bits_ternary", "bits", "bits[bits=2,options=3,function=linear,logit=0.2;-0.1;0.4]", 1},
      {"not_gate", "not_gate", "not_gate", 2},
      {"translator", "translation[max_length=5]", "translator[hidden=32,embedding=32]", 16},
      {"translator_sampled_feed", "translation[max_length=4]",
       "translator[hidden=32,embedding=32,feed=sampled,posterior=sentence]", 4},
      {"translator_written", "translation[words=1,max_length=2]",
       "translator[hidden=4,embedding=3,feed=sampled,words=sampled,reward=share]", 2},
      {"memory_reader", "qa", "memory_reader[hops=2]", 16},
      {"memory_reader_several", "qa", "memory_reader[hops=1,picks=2]", 2},
      {"attentive_reader", "cloze[facts=2]", "attentive_reader[embedding=16,hidden=24]", 8},
      {"attentive_reader_impatient", "cloze[facts=1]", "attentive_reader[kind=impatient]", 2},
      {"captioner", "caption[grid=2,objects=1]", "captioner[hidden=32,channels=4,features=8,gate=true]", 2},
      {"glimpse_reader", "glimpse[size=12]", "glimpse_reader[grid=3,glimpses=3,patch=4]", 16},
      {"belief_network", "images[size=8,examples=40]", "belief_network[layers=2,units=3]", 4},
      {"codebook", "images[size=8,examples=40]", "codebook[vectors=2,codes=3,width=2,hidden=4]", 4},
      {"gaussians", "gaussians", "gaussians[columns=2,k=0.7,mean=-0.2;0.4,log_scale=-0.3]", 1},
      {"subsets", "subsets", "subsets[options=4,picks=2,columns=2,function=pairs,logit=0.3;-0.2;0.5;0]", 1},
      {"selector", "features[kind=switch]", "selector[hidden=6]", 4},
      {"router", "features[kind=regimes]", "router[hidden=3]", 4},
      {"router_several", "features[kind=regimes]", "router[picks=2,hidden=3,gate=none]", 4},
      {"selector_several", "features[features=5]", "selector[picks=2,hidden=6]", 4},
      {"selector_patches", "patches[size=8,examples=40]", "selector[picks=2,hidden=6]", 4},
      {"selector_words", "reviews[longest=6,examples=40]", "selector[maps=shared,share=0.5,hidden=6]", 4},
      {"subsets_drawn", "subsets",
       "subsets[options=4,picks=1;3,columns=2,function=pairs,logit=0.3;-0.2;0.5;0,law=plackett_luce]", 1},
      {"glimpse_reader_gaussian", "glimpse[size=12]", "glimpse_reader[policy=gaussian,glimpses=2,patch=4,features=8,hidden=8]",
       4},
      {"glimpse_reader_several", "glimpse[digits=2,size=8,examples=40]",
       "glimpse_reader[grid=2,glimpses=1,patch=4,features=8,hidden=8]", 4},
      {"turing_machine", "algorithm[bits=2,max_length=1]", "turing_machine[cells=3,width=3,hidden=6]", 4},
      {"pixel_attention", "canvas[size=8,canvas=12,examples=20,noise=2]",
       "pixel_attention[grid=3,layers=1,channels=2,hidden=4,code=2]", 4},
      {"sentence_pair", "pairs[kind=phrase,words=2,examples=40]", "sentence_pair[width=3,window=2]", 2},
      {"sentence_pair_top", "pairs[kind=phrase,words=2,examples=40]", "sentence_pair[width=3,attention=top]", 2},
      {"ponderer", "puzzle[size=3]", "ponderer[hidden=6,steps=4,beta=0.3,tau=0.1]", 4},
      {"ponderer_at_once", "puzzle[kind=sort,size=3]", "ponderer[hidden=6,steps=4,ask=step,beta=0.3,tau=0.1]", 4},
      {"ponderer_sequence", "puzzle[kind=logic,size=2,length=2]", "ponderer[hidden=6,steps=3,beta=0.3,tau=0.1]", 2},
      {"tape_machine", "algorithm[bits=2,max_length=1]", "tape_machine[cells=3,width=3,hidden=12]", 4},
      {"programmer", "tables[columns=2,max_rows=3,range=1,lists=false]", "programmer[steps=2,hidden=8,embedding=32]", 4},
      {"transformer", "recall[pairs=1,queries=1,length=3,vocabulary=4]", "transformer[width=4,inner=3]", 4},
      {"transformer_several", "induction[length=3,vocabulary=3]", "transformer[width=4,inner=3,picks=2,share=true]", 4},
      {"transformer_layer", "recall[pairs=2,queries=2,length=4,vocabulary=4,joined=true]",
       "transformer[layers=1,heads=1,width=8,inner=6]", 4},
      {"writer", "answers[symbols=2,size=2]", "writer[hidden=4,embedding=3,reward=share]", 4},
      {"writer_table", "sequences[longest=3]", "writer[policy=table,drift=0.5,reference=initial,away=0.5]", 1},
  };
  return all;
}

SmallScene::SmallScene(const SceneSpec& scene, bool posterior) {
  const Key key(1);
  task = tasks::make_task(Spec::parse(scene.task), key / "data");
  std::vector<int> first(scene.examples);
  std::iota(first.begin(), first.end(), 0);
  batch = task->batch(tasks::Split::train, first);
  model = tasks::make_model_for<float>(*task, Spec::parse(scene.model), key / "init", posterior);
}

}  // namespace hardgrad::verification
