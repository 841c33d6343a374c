package runlog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
)

// TestWhyNoLog: each reason is an ErrNoLog, and says itself in the languages of people.
func TestWhyNoLog(t *testing.T) {
	want := [][2]string{{"the run was not started", "该运行记录未启动"}, {"its executor has none", "执行器中没有该日志"}, {"node n1 is gone", "节点 n1 已不存在"}, {"as others say it", "as others say it"}}
	for i, err := range runlog.Logless() {
		var said interface{ In(language string) string }
		if !errors.Is(err, errs.ErrNoLog) || !errors.As(err, &said) || err.Error() != "xxljob: no log: "+want[i][0] {
			t.Fatalf("%v", err)
		}
		if said.In("en") != want[i][0] || said.In("fr") != want[i][0] || said.In("zh-CN") != want[i][1] {
			t.Errorf("%q, %q", said.In("en"), said.In("zh-CN"))
		}
		if tw := said.In("zh-TW"); tw == "" || strings.ContainsAny(tw, "该运执节") {
			t.Errorf("%q", tw)
		}
	}
}
