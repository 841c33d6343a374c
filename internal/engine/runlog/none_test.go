package runlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
)

// TestWhyNoLog: each reason is an ErrNoLog, and says itself in the languages of people.
func TestWhyNoLog(t *testing.T) {
	want := [][2]string{{"the run was not started", "该运行记录未启动"}, {"its executor has none", "执行器中没有该日志"}, {"node n1 is gone", "节点 n1 已不存在"}, {"as others say it", "as others say it"},
		{"app orders is not attached any more", "执行器 orders 已不在该节点上"}, {"its executor has not answered within 5s", "其执行器在 5s 内没有响应"},
		{"its executor failed: disk: full", "其执行器出错：disk: full"}, {"its executor refused: not mine", "其执行器拒绝了请求：not mine"},
		{"10.0.0.1:9 is not an address of app orders any more", "10.0.0.1:9 已不是执行器 orders 的地址"}}
	for i, err := range runlog.Logless() {
		var said interface{ In(language string) string }
		if !errors.Is(err, errs.ErrNoLog) || !errors.As(err, &said) || err.Error() != "xxljob: no log: "+want[i][0] {
			t.Fatalf("%v", err)
		}
		if said.In("en") != want[i][0] || said.In("fr") != want[i][0] || said.In("zh-CN") != want[i][1] {
			t.Errorf("%q, %q", said.In("en"), said.In("zh-CN"))
		}
		if tw := said.In("zh-TW"); tw == "" || strings.ContainsAny(tw, "该运执节内响应") {
			t.Errorf("%q", tw)
		}
	}
}

// TestLateLogs: that a log has not come in time is said in the languages of people, and its error is still what it was.
func TestLateLogs(t *testing.T) {
	want := [][4]string{{"reading: context deadline exceeded", "no answer in time", "未及时响应", "未及時回應"},
		{"no answer from node n1: context deadline exceeded", "no answer from node n1 in time", "节点 n1 未及时响应", "節點 n1 未及時回應"},
		{"no answer from node n1: context deadline exceeded: store is away", "no answer from node n1 in time: store is away", "节点 n1 未及时响应: store is away", "節點 n1 未及時回應: store is away"}}
	for i, err := range runlog.Late() {
		var said interface{ In(language string) string }
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errs.ErrNoLog) || !errors.As(err, &said) {
			t.Fatalf("%v", err)
		}
		if got := [4]string{err.Error(), said.In("en"), said.In("zh-CN"), said.In("zh-TW")}; got != want[i] {
			t.Errorf("%q, want %q", got, want[i])
		}
	}
}
