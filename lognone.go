package xxljob

// Why there is no log of a run.

import "github.com/xxljob/xxljob/internal/cron"

// logless is an ErrNoLog with its reason. It says that as a ScheduleError does, in the language
// of who reads it.
type logless struct{ why cron.Texts }

func (e *logless) Error() string { return ErrNoLog.Error() + ": " + e.why.In("en") }

func (e *logless) Unwrap() error { return ErrNoLog }

// In returns the reason alone.
func (e *logless) In(lang string) string { return e.why.In(lang) }

func errNotStarted() error {
	return &logless{cron.Texts{"the run was not started", "该运行记录未启动", "該執行記錄未啟動"}}
}

func errNoneThere() error {
	return &logless{cron.Texts{"its executor has none", "执行器中没有该日志", "執行器中沒有此日誌"}}
}

func errNodeGone(incarnation string) error {
	return &logless{cron.Texts{"node " + incarnation + " is gone", "节点 " + incarnation + " 已不存在", "節點 " + incarnation + " 已不存在"}}
}

// noLog is a reason that somebody else has said.
func noLog(why string) error { return &logless{cron.Texts{why, why, why}} }
