// Every text of the page, once in each language. Columns: English, Chinese. "{0}" stands for an
// argument. Texts of a program or a recording are shown as they come.

const TEXTS = {
  // Shell
  "app.name": ["plumbline", "plumbline"],
  "app.loading": ["Loading …", "加载中 …"],
  "app.building": ["Comparing … {0}", "正在比较 … {0}"],
  "app.incomplete": ["The comparison still runs: counts may grow.", "比较仍在进行，计数可能增加。"],
  "app.back": ["All results", "所有结果"],
  "app.copied": ["Link copied.", "链接已复制。"],
  "app.copy-failed": ["The browser does not let the page copy. Copy the address instead.", "浏览器不允许复制，请复制地址栏。"],
  "app.no-view": ["There is no view \"{0}\" here; this is the graph.", "没有视图“{0}”，已显示图。"],
  "app.nearest": ["\"{0}\" is not in this recording; its nearest ancestor is shown.", "此记录中没有“{0}”，已显示最近的上级节点。"],
  "app.not-here": ["The selected call does not exist at this step and rank.", "所选节点在该步数和 rank 下不存在。"],
  "app.error": ["This did not work: {0}", "操作失败：{0}"],
  "app.close": ["Close", "关闭"],
  "app.full-name": ["Full name", "完整名称"],
  "app.copy": ["Copy", "复制"],
  "app.more": ["Show all {0} characters", "显示全部 {0} 个字符"],
  "app.skip": ["Skip to the view", "跳到视图"],
  // Datasets and opening
  "open.title": ["Results", "结果"],
  "open.new": ["Open recordings", "打开记录"],
  "open.target": ["target", "目标"],
  "open.golden": ["golden", "基准"],
  "open.none": ["Nothing is open. Choose a recording below, or start \"plumb view TARGET GOLDEN\".", "尚未打开任何结果。请在下方选择记录，或运行 \"plumb view TARGET GOLDEN\"。"],
  "open.compare": ["Compare", "比较"],
  "open.alone": ["Open alone", "单独打开"],
  "open.as-target": ["as target", "作为目标"],
  "open.as-golden": ["as golden", "作为基准"],
  "open.empty": ["This directory holds no recording. Record one with plumbline, or go to another directory.", "此目录下没有记录。请先用 plumbline 采集，或进入其他目录。"],
  "open.up": ["Up", "上一级"],
  "open.column.name": ["Name", "名称"],
  "open.column.kind": ["Kind", "类型"],
  "open.column.size": ["Size", "大小"],
  "open.column.ranks": ["Ranks", "Rank 数"],
  "open.column.steps": ["Steps", "步数"],
  "open.column.task": ["Task", "任务"],
  "open.column.level": ["Level", "级别"],
  "open.state.building": ["being compared", "比较中"],
  "open.state.ready": ["ready", "就绪"],
  "open.state.failed": ["failed", "失败"],
  // Top bar
  "bar.step": ["Step", "步"],
  "bar.rank": ["Rank", "Rank"],
  "bar.ms": ["Micro step", "微步"],
  "bar.all": ["all", "全部"],
  "bar.query": ["Query", "查询"],
  "bar.query.hint": ["Filter: level:error op:matmul error>0.1 or a part of a name   ( / )", "筛选：level:error op:matmul error>0.1 或名称片段   ( / )"],
  "bar.theme": ["Colours: {0}", "配色：{0}"],
  "bar.theme.auto": ["as the system", "跟随系统"],
  "bar.theme.light": ["light", "浅色"],
  "bar.theme.dark": ["dark", "深色"],
  "bar.language": ["中文", "English"],
  "bar.help": ["Keys and help", "快捷键与帮助"],
  "bar.share": ["Copy link", "复制链接"],
  "bar.export": ["Export", "导出"],
  "bar.views": ["Views", "视图"],
  "answer.first": ["First wrong call", "首个出错调用"],
  "answer.open": ["Go there", "前往"],
  "answer.all": ["The whole answer", "完整结论"],
  // Views
  "view.graph": ["Graph", "图"],
  "view.outline": ["Outline", "大纲"],
  "view.list": ["List", "列表"],
  "view.first": ["First divergence", "首个偏差"],
  "view.structure": ["Structure", "结构差异"],
  "view.timeline": ["Communication", "通信"],
  "view.ranks": ["Ranks", "Rank 网格"],
  "view.value": ["Values", "数值"],
  "view.trend": ["Trend", "趋势"],
  "view.summary": ["Summary", "概要"],
  // Levels
  "level.pass": ["pass", "通过"],
  "level.warning": ["warning", "警告"],
  "level.error": ["error", "错误"],
  "level.unmatched": ["unmatched", "未匹配"],
  "level.none": ["not judged", "未判定"],
  "overflow.medium": ["medium overflow", "中度溢出"],
  "overflow.high": ["high overflow", "高度溢出"],
  "overflow.critical": ["critical overflow", "严重溢出"],
  "overflow.": ["no overflow", "无溢出"],
  "side.target": ["target", "目标"],
  "side.golden": ["golden", "基准"],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

export type TextKey = keyof typeof TEXTS;
export type Language = "en" | "zh";
export type Say = (key: TextKey, ...values: readonly (string | number)[]) => string;

export function speaker(language: Language): Say {
  const column = language === "zh" ? 1 : 0;
  return (key, ...values) =>
    TEXTS[key][column].replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)] ?? ""));
}
