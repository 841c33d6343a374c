package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// TestInstantsOfARequest: what a request says of instants is told in its zone, be it known here or
// not, and a list that is none is left out.
func TestInstantsOfARequest(t *testing.T) {
	day := func(d int) int64 { return time.Date(2026, 7, d, 4, 0, 0, 0, time.UTC).UnixMilli() }
	list := fmt.Sprintf("%d,%d,%d", day(1), day(2), day(3))
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprint(day(1)+int64(i)))
	}
	for _, tt := range []struct {
		name string
		req  wire.TriggerRequest
		want string
	}{
		{"all", wire.TriggerRequest{Count: 3, Instants: list}, "01 02 03"},
		{"a zone that is not known here", wire.TriggerRequest{Count: 3, Instants: list, Zone: "Mars/Base", ZoneOffset: -5 * 3600}, "30 01 02"},
		{"no list", wire.TriggerRequest{Count: 3}, "01 03"},
		{"no list, and Last is no instant", wire.TriggerRequest{Count: 1000}, "01"},
		{"one", wire.TriggerRequest{Count: 1}, "01"},
		{"not in order", wire.TriggerRequest{Count: 3, Instants: fmt.Sprintf("%d,%d", day(2), day(1))}, "01 03"},
		{"no numbers", wire.TriggerRequest{Count: 3, Instants: "x,,"}, "01 03"},
		{"no times", wire.TriggerRequest{Count: 3, Instants: "-5,9223372036854775807"}, "01 03"},
		{"too many", wire.TriggerRequest{Count: 3, Instants: strings.Join(many, ",")}, "01 03"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := executor.New(executor.Config{App: "app", Location: time.UTC})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var previous time.Time
			if err := e.Handle("h", func(_ context.Context, k *executor.Task) error {
				for _, at := range k.Instants() {
					got = append(got, at.Format("02"))
				}
				if again := k.Instants(); !slices.Equal(again, k.Instants()) || &again[0] == &k.Instants()[0] {
					t.Error("a list is not the caller's own")
				}
				previous = k.Previous()
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			tt.req.JobID, tt.req.LogID, tt.req.ExecutorHandler = 1, 1, "h"
			tt.req.ScheduledAt, tt.req.FirstAt, tt.req.LastAt, tt.req.PreviousAt = day(3), day(1), day(3), day(1)-1
			if ret, _ := e.Run(t.Context(), tt.req); !ret.OK() {
				t.Fatal(ret.Msg)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("told %s, want %s", s, tt.want)
			}
			if previous.UnixMilli() != day(1)-1 || tt.req.Zone != "" && previous.Hour() != 22 {
				t.Errorf("the instant before is %v", previous)
			}
		})
	}
}
