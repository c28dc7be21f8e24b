#include "bind_live_monitor.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "errors.h"
#include "live_monitor.h"
#include "watch/live/step_files.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using watch::MonitorConfig;

MonitorKind KindNamed(std::string_view name) {
  const MonitorKindInfo* found = MonitorKindOfFile(name);
  if (found == nullptr) found = MonitorKindOfTag(name);
  if (found == nullptr) throw nb::value_error("no such kind of values");
  return found->kind;
}

std::string FormatName(const MonitorConfig& config) {
  return std::string(MonitorConfig::kFormats[static_cast<size_t>(config.format)]);
}

std::vector<std::string> OpNames(const MonitorConfig& config) {
  std::vector<std::string> names;
  for (const watch::Op op : config.ops) names.emplace_back(watch::NameOf(op));
  return names;
}

std::vector<std::string> TargetNames(const MonitorConfig& config) {
  std::vector<std::string> names;
  for (const watch::Target& target : config.targets) names.push_back(target.name);
  return names;
}

// Only where it is there: TrainerMonitorV2 asks for nothing else.
watch::SecondForm& SecondOf(MonitorConfig& config) {
  if (!config.second) throw nb::value_error("no configuration of a TrainerMonitorV2");
  return *config.second;
}

// What is asked of a configuration, and set in it.
void BindQuestions(nb::class_<MonitorConfig>& config) {
  config
      .def(
          "features_of",
          [](const MonitorConfig& c, int64_t stage, const std::vector<std::string>& names) {
            std::vector<std::string> kinds;
            for (const MonitorKind kind : watch::FeaturesOf(c, stage, names)) {
              kinds.emplace_back(InfoOf(kind).file);
            }
            return kinds;
          },
          "Kinds of features of a module by its names.")
      .def("set_ops",
           [](MonitorConfig& c, const std::vector<std::string>& names) {
             c.ops.clear();
             for (const std::string& name : names) {
               if (const auto op = watch::OpNamed(name)) c.ops.push_back(*op);
             }
             if (c.ops.empty()) c.ops = {watch::Op::kNorm};
           })
      .def(
          "printed_name",
          [](const MonitorConfig& c, std::string_view name) {
            return watch::SquashName(name, c.squash);
          },
          "The name of a module or parameter as rows have it.");
}

void BindMonitorConfig(nb::module_& m) {
  nb::class_<MonitorConfig> config(m, "MonitorConfig", "A checked configuration of a monitor.");
  config.def_ro("is_latest", &MonitorConfig::is_latest, "Whether its profile is \"latest\".")
      .def_prop_ro("targets", TargetNames)
      .def_ro("watches_all_modules", &MonitorConfig::watches_all_modules)
      .def_ro("activations", &MonitorConfig::activations)
      .def_ro("forward_only", &MonitorConfig::forward_only)
      .def_ro("backward_only", &MonitorConfig::backward_only)
      .def_ro("gradients", &MonitorConfig::gradients)
      .def_ro("moments", &MonitorConfig::moments)
      .def_ro("parameters", &MonitorConfig::parameters)
      .def_ro("updated_parameters", &MonitorConfig::updated_parameters)
      .def_ro("directions", &MonitorConfig::directions)
      .def_ro("adam_updates", &MonitorConfig::adam_updates)
      .def_ro("micro_batch_gradients", &MonitorConfig::micro_batch_gradients)
      .def_ro("stack_info", &MonitorConfig::stack_info)
      .def_ro("print_struct", &MonitorConfig::print_struct)
      .def_prop_ro("communication", [](const MonitorConfig& c) { return c.communication.enable; })
      .def_prop_ro("before_communication",
                   [](const MonitorConfig& c) { return c.communication.before; })
      .def_prop_ro("logs_communication",
                   [](const MonitorConfig& c) { return c.communication.log_only; })
      .def_prop_ro("code_lines", [](const MonitorConfig& c) { return c.communication.code_lines; })
      .def_prop_ro("second", SecondOf, nb::rv_policy::reference_internal)
      .def_prop_ro("ops", OpNames)
      .def_prop_ro("format", FormatName)
      .def_prop_ro("features", [](const MonitorConfig& c) { return c.features.enable; })
      .def_ro("ranks", &MonitorConfig::ranks)
      .def_ro("start_step", &MonitorConfig::start_step)
      .def_ro("step_interval", &MonitorConfig::step_interval)
      .def_ro("collect_times", &MonitorConfig::collect_times)
      .def_ro("stop_step", &MonitorConfig::stop_step)
      .def_ro("moments_after", &MonitorConfig::moments_after)
      .def_ro("dynamic_on", &MonitorConfig::dynamic_on)
      .def_ro("apply_at_step", &MonitorConfig::apply_at_step)
      .def_ro("warnings", &MonitorConfig::warnings);
  BindQuestions(config);
  m.def(
      "read_monitor_config",
      [](const std::string& path) { return ValueOrRaise(watch::ReadMonitorConfig(path)); },
      "ValueError has one line for every fault.");
}

void BindSecondForm(nb::module_& m) {
  nb::class_<watch::SecondForm>(m, "SecondForm", "What a TrainerMonitorV2 is told beside.")
      .def_ro("framework", &watch::SecondForm::framework)
      .def_ro("output", &watch::SecondForm::output)
      .def_ro("follows_optimizer", &watch::SecondForm::follows_optimizer)
      .def_ro("communication_ranks", &watch::SecondForm::communication_ranks)
      .def_rw("micro_batches", &watch::SecondForm::micro_batches);
  m.def(
      "read_second_form",
      [](const std::string& path, const std::string& framework) {
        return ValueOrRaise(watch::ReadSecondForm(path, framework));
      },
      nb::arg("path"), nb::arg("framework"), "As read_monitor_config, of a TrainerMonitorV2.");
}

void BindMonitorPlace(nb::module_& m) {
  using Place = watch::MonitorPlace;
  nb::class_<Place>(m, "MonitorPlace", "Where a monitor writes, and of which process.")
      .def(
          "__init__",
          [](Place* self, std::string output, std::optional<int64_t> rank,
             std::pair<int64_t, std::vector<int64_t>> pipeline, int64_t first_step, bool goes_on) {
            new (self) Place{std::move(output),
                             {rank.value_or(0), pipeline.first, std::move(pipeline.second)},
                             rank,
                             first_step,
                             goes_on};
          },
          nb::arg("output"), nb::arg("rank").none(), nb::arg("pipeline"), nb::arg("first_step"),
          nb::arg("goes_on"));
}

// Loads SQLite.
const watch::TrendModule& Trend() {
  const nb::object module = nb::module_::import_("plumbline._compare").attr("_trend_output");
  return *static_cast<const watch::TrendModule*>(nb::cast<nb::capsule>(module).data());
}

struct Made {
  std::string directory, warning;
  bool is_appended = false;  // to what an earlier process wrote
};

// The sink for the format, in a directory of its own.
std::unique_ptr<watch::StepSink> NewSink(const MonitorConfig& config,
                                         const watch::MonitorPlace& place, Made* made) {
  if (config.format == MonitorConfig::Format::kApi) return nullptr;
  const int64_t rank = place.rank.value_or(0);
  if (config.second) {
    if (made->directory.empty()) {
      made->directory =
          ValueOrRaise(watch::MakeSecondDirectory(config.second->output, rank, &made->warning));
    }
    return watch::NewSecondSink(made->directory, config, rank);
  }
  const bool needs_database = config.format == MonitorConfig::Format::kSqlite;
  const watch::TrendModule* const trend = needs_database ? &Trend() : nullptr;
  if (made->directory.empty()) {
    made->directory =
        ValueOrRaise(watch::MakeMonitorDirectory(config, place, trend, &made->warning));
    made->is_appended = !config.append_from.empty() && made->warning.empty();
  }
  if (config.format == MonitorConfig::Format::kTensorBoard) {
    return ValueOrRaise(watch::NewEventSink(made->directory, config.ops, rank));
  }
  if (trend != nullptr) return ValueOrRaise(trend->open(made->directory, config, rank));
  return watch::NewCsvSink(made->directory, {config.ops, config.digits, config.steps_per_file,
                                             config.micro_batch_gradients});
}

// anomaly.json of this rank, begun anew; empty without "dump".
std::string AlertPath(const MonitorConfig& config, const watch::MonitorPlace& place) {
  if (!config.dumps_alerts) return "";
  const std::string directory =
      fmt::format("{}/anomaly_detected/rank{}", place.output, place.rank.value_or(0));
  ValueOrRaise(MakeDirectories(directory));
  std::string path = directory + "/anomaly.json";
  ValueOrRaise(watch::BeginAlertFile(path));
  return path;
}

nb::object NewLiveMonitor(const nb::dict& framework, const MonitorConfig& config,
                          const watch::MonitorPlace& place, const std::string& directory) {
  FrameworkTypes types;
  FrameworkHooks hooks;
  if (!ReadTypes(framework.ptr(), &types)) {
    throw nb::value_error("new_live_monitor: name, tensor or describe is missing");
  }
  ReadHooks(framework.ptr(), &hooks);
  Made made{directory, "", false};
  auto sink = NewSink(config, place, &made);
  auto monitor = std::make_unique<watch::Monitor>(config, place.alerts, std::move(sink),
                                                  AlertPath(config, place), 0);
  if (!config.watch.list().empty()) {
    monitor->Watch(std::make_unique<watch::RuleWatch>(
        config, watch::RuleWatchPlace{made.directory, place.rank.value_or(0),
                                      made.is_appended || place.goes_on}));
  }
  // Of all ranks and optimizers one shows it.
  const int64_t first = config.ranks.empty() ? 0 : *std::ranges::min_element(config.ranks);
  const bool is_first = directory.empty() || place.goes_on;
  if (is_first && place.rank.value_or(0) == first) monitor->ShowProgress(made.directory);
  auto* live = new LiveMonitor(std::move(types), hooks, std::move(monitor), config.eps);
  nb::object owner = nb::cast(live, nb::rv_policy::take_ownership);
  live->set_owner(owner.ptr());
  live->set_directory(made.directory);
  live->set_batch_first(config.features.is_batch_first);
  if (!made.warning.empty()) live->Warn(made.warning);
  return owner;
}

// {tag: {op: number}} of the rows under way, or of the last step.
nb::dict MetricsOf(LiveMonitor& self, std::string_view kind_name, const MonitorConfig& config,
                   int64_t rank) {
  const MonitorKind kind = KindNamed(kind_name);
  nb::dict metrics;
  for (const watch::Row& row : self.monitor().Latest(kind)) {
    nb::dict values;
    const std::span<const watch::Op> own = watch::FeatureOps(kind);
    for (const watch::Op op : own.empty() ? std::span<const watch::Op>(config.ops) : own) {
      if (static_cast<size_t>(op) >= watch::kNumberOps) continue;
      values[std::string(watch::NameOf(op)).c_str()] = row.values.of(op);
    }
    metrics[watch::TagOf(kind, row, rank).c_str()] = values;
  }
  return metrics;
}

void AddAll(LiveMonitor& self, std::string_view kind_name, const nb::list& names,
            const nb::list& values) {
  const MonitorKind kind = KindNamed(kind_name);
  for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
    if (!nb::handle(values[i]).is_none()) {
      self.Add(kind, nb::cast<watch::WatchedName*>(names[i]), 0, nb::handle(values[i]).ptr());
    }
  }
}

// `place`: stage and group.
std::shared_ptr<WatchedModule> ModuleFrom(const MonitorConfig& config, std::string name,
                                          std::pair<int32_t, uint32_t> place,
                                          std::shared_ptr<MicroBatches> batches,
                                          std::string_view target) {
  auto module = std::make_shared<WatchedModule>();
  module->name = std::move(name);
  module->vpp_stage = place.first;
  module->group = place.second;
  using Elements = WatchedModule::Elements;
  if (config.all_elements) module->elements = Elements::kAll;
  if (config.second) module->elements = Elements::kNumbered;
  module->in_evaluation = config.second.has_value();
  module->batches = std::move(batches);
  const auto found = std::ranges::find(config.targets, target, &watch::Target::name);
  if (found != config.targets.end()) module->spec = *found;
  return module;
}

void BindModuleWatch(nb::module_& m) {
  nb::class_<MicroBatches>(m, "MicroBatches", "Counts the calls of one outermost module.")
      .def(nb::init<>());
  nb::class_<ModuleWatch>(m, "ModuleWatch", "Hooks around the calls of one watched module.")
      .def(
          "__init__",
          [](ModuleWatch* self, LiveMonitor& monitor, const Autograd& autograd,
             nb::object is_recomputing, const MonitorConfig& config, std::string name,
             std::string_view target, std::pair<int32_t, uint32_t> place, nb::object batches,
             bool is_root, bool is_watched) {
            // Lives as long as its Python object.
            const std::shared_ptr<MicroBatches> counter(nb::cast<MicroBatches*>(batches),
                                                        [batches](MicroBatches*) {});
            const auto module = ModuleFrom(config, std::move(name), place, counter, target);
            module->is_root = is_root;
            module->forward = is_watched && !config.backward_only;
            module->backward = is_watched && !config.forward_only;
            new (self) ModuleWatch(monitor, autograd, std::move(is_recomputing), module);
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("monitor"), nb::arg("autograd"),
          nb::arg("is_recomputing").none(), nb::arg("config"), nb::arg("name"), nb::arg("target"),
          nb::arg("place"), nb::arg("batches"), nb::arg("is_root"), nb::arg("is_watched"))
      .def(
          "before",
          [](ModuleWatch& self, nb::handle module, nb::handle args, nb::handle kwargs) {
            self.Before(module.ptr(), args.ptr(), kwargs.ptr());
          },
          "A forward pre hook (with_kwargs).")
      .def(
          "add_feature",
          [](ModuleWatch& self, std::string_view kind, const watch::WatchedName& name) {
            self.AddFeature(KindNamed(kind), &name);
          },
          nb::arg("kind"), nb::arg("name"), "Of each call; before the first one.")
      .def(
          "after",
          [](ModuleWatch& self, nb::handle module, nb::handle, nb::handle, nb::handle output) {
            self.After(module.ptr(), output.ptr());
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          "A forward hook (with_kwargs, always_call).");
}

using LiveMonitorClass = nb::class_<LiveMonitor>;

void BindValues(LiveMonitorClass& live) {
  live.def_prop_ro("directory", &LiveMonitor::directory)
      .def(
          "name",
          [](LiveMonitor& self, std::string_view text, int32_t vpp_stage, uint32_t group) {
            return self.monitor().Name(text, vpp_stage, group);
          },
          nb::rv_policy::reference_internal, nb::arg("text"), nb::arg("vpp_stage") = 0,
          nb::arg("group") = 0)
      .def(
          "add",
          [](LiveMonitor& self, std::string_view kind, const watch::WatchedName& name,
             nb::handle value) { self.Add(KindNamed(kind), &name, 0, value.ptr()); },
          nb::arg("kind"), nb::arg("name"), nb::arg("value").none())
      .def("add_all", AddAll, "One row for each value that is not None.")
      .def(
          "add_direction",
          [](LiveMonitor& self, const watch::WatchedName& name, nb::handle gradient,
             nb::handle momentum) {
            return self.AddDirection(&name, gradient.ptr(), momentum.ptr());
          },
          nb::arg("name"), nb::arg("gradient").none(), nb::arg("momentum").none())
      .def(
          "add_feature",
          [](LiveMonitor& self, std::string_view kind, const watch::WatchedName& name,
             nb::handle weight) {
            self.AddFeature(KindNamed(kind), &name, 0, weight.ptr(), nullptr);
          },
          nb::arg("kind"), nb::arg("name"), nb::arg("weight"), "Of a matrix of weights.")
      .def(
          "add_adam",
          [](LiveMonitor& self, const watch::WatchedName& name, nb::handle first, nb::handle second,
             const std::tuple<double, double, double, double>& rule) {
            const auto [beta1, beta2, eps, step] = rule;
            return self.AddAdam(&name, first.ptr(), second.ptr(), {beta1, beta2, eps, step});
          },
          nb::arg("name"), nb::arg("first").none(), nb::arg("second").none(), nb::arg("rule"),
          "`rule`: both betas, eps and how many steps the moments hold.")
      .def(
          "parameter_hook",
          [](LiveMonitor& self, const Autograd& autograd, const watch::WatchedName& name,
             int32_t micro_batches, bool takes_every, bool is_accumulated, nb::object adds_to) {
            const ParameterRule rule{micro_batches, takes_every, is_accumulated,
                                     adds_to.is_none() ? nullptr : adds_to.ptr()};
            return nb::steal(CheckedPython(NewParameterHook(self, autograd, &name, rule)));
          },
          nb::arg("autograd"), nb::arg("name"), nb::arg("micro_batches"), nb::arg("takes_every"),
          nb::arg("is_accumulated"), nb::arg("adds_to").none())
      .def("metrics", MetricsOf, nb::arg("kind"), nb::arg("config"), nb::arg("rank"));
}

void BindSteps(LiveMonitorClass& live) {
  live.def("commit", &LiveMonitor::Commit, nb::arg("step"))
      .def("drop", &LiveMonitor::Drop)
      .def("flush",
           [](LiveMonitor& self) {
             const nb::gil_scoped_release release;
             self.monitor().Flush();
           })
      .def("close",
           [](LiveMonitor& self) {
             const nb::gil_scoped_release release;
             self.monitor().Close();
           })
      .def(
          "write_rows",
          [](LiveMonitor& self, const std::string& name,
             const std::vector<std::vector<std::string>>& rows) {
            if (self.directory().empty()) return;
            ValueOrRaise(watch::WriteRows(JoinPath(self.directory(), name), rows));
          },
          nb::arg("name"), nb::arg("rows"),
          "A small csv file beside those of the values, unless it is there.")
      .def(
          "write_names",
          [](LiveMonitor& self,
             const std::vector<std::tuple<std::string, std::string, std::string>>& names,
             const MonitorConfig& config) {
            if (self.directory().empty()) return;
            std::vector<watch::FullName> all;
            for (const auto& [kind, printed, full] : names) all.push_back({kind, printed, full});
            ValueOrRaise(watch::WriteNames(JoinPath(self.directory(), watch::kNamesFile), all,
                                           config.digits));
          },
          nb::arg("names"), nb::arg("config"),
          "names.json, of (kind, printed name with its stage, full name).")
      .def("take_messages", &LiveMonitor::TakeMessages);
}

}  // namespace

void BindLiveMonitor(nb::module_& m) {
  BindSecondForm(m);
  BindMonitorConfig(m);
  BindMonitorPlace(m);
  nb::class_<watch::WatchedName>(m, "WatchedName", "What rows of a monitor are called.")
      .def_ro("text", &watch::WatchedName::text);
  LiveMonitorClass live(m, "LiveMonitor", "The values of a training, step by step.");
  BindValues(live);
  BindSteps(live);
  BindModuleWatch(m);
  m.def("new_live_monitor", NewLiveMonitor, nb::arg("framework"), nb::arg("config"),
        nb::arg("place"), nb::arg("directory"),
        nb::sig("def new_live_monitor(framework: dict, config: MonitorConfig, "
                "place: MonitorPlace, directory: str) -> LiveMonitor"));
}

}  // namespace plumbline::python
