package console_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestRecordInWords: the record of changes calls fields and values what the form calls them, in
// the language of who reads it.
func TestRecordInWords(t *testing.T) { onBothStores(t, testRecordInWords) }

func testRecordInWords(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	j := x.job("orders", "nightly")
	j.Timeout, j.Schedule, j.Route, j.Tags = 90*time.Second, xxljob.Crontab("30 4 * * *"), xxljob.RouteRound, []string{"ledger", "nightly"}
	j, err := x.s.UpdateJob(context.Background(), j)
	must(t, err)
	must(t, x.s.StopJob(context.Background(), j.ID))
	_, err = x.s.Trigger(xxljob.WithActor(context.Background(), "wang"), j.ID, xxljob.Trigger{})
	must(t, err)
	b.get("changes").is(200).has("Timeout 0 1 min 30 s", "State enabled stopped", "Route strategy", "round robin", "Tags ledger, nightly", "0 0 3 * * ?", "30 4 * * *", "Trigger by hand").lacks("90000000000", "ROUND", "&#34;Conf&#34;")
	b.post("look", url.Values{"language": {"zh-CN"}})
	b.get("changes").is(200).has("任务超时时间 0 1 分 30 秒", "状态 已启动 已停止", "路由策略", "轮询", "触发方式 手动触发")
	x.user(console.User{Name: "li.na", Title: "李娜", Apps: map[string]console.Role{"orders": console.Editor}, Scripts: true})
	b.get("changes?object=user&id=li.na").is(200).has("显示名称 李娜", "执行器 orders: 编辑者", "脚本 是").lacks("Title", "Scripts", `{"orders"`)
	b.get("changes?actor=nobody").is(200).has("没有符合筛选条件的操作记录。")
}
