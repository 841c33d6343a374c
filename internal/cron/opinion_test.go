package cron

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

// misread returns a crontab that is said to be one expression and is another.
func misread(t *testing.T, says, means string) *Crontab {
	tab := *compile(t, means).(*Crontab)
	tab.source = says
	return &tab
}

func TestSecondOpinionShowsBothReadings(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	tests := []struct{ name, says, means, here, gronx string }{
		{"another weekday", "0 9 * * 1", "0 9 * * 2", "2026-01-20 09:00", "2026-01-19 09:00"},
		{"a day less", "0 9 * * 1-5", "0 9 * * 2-5", "2026-01-20 09:00", "2026-01-19 09:00"},
		{"a day more", "30 9 * * 1-5", "30 9 * * 1-6", "2026-01-17 09:30", "2026-01-19 09:30"},
		{"another minute", "5 * * * *", "6 * * * *", "2026-01-16 00:06", "2026-01-16 00:05"},
		{"another hour", "0 8 * * *", "0 9 * * *", "2026-01-16 09:00", "2026-01-16 08:00"},
		{"another month", "0 0 1 7 *", "0 0 1 3 *", "2026-03-01 00:00", "2026-07-01 00:00"},
		{"both days where either would do", "0 0 13 * 5", "0 0 */12 * 5", "2026-02-13 00:00", "2026-01-16 00:00"},
		{"never", "0 0 1 7 *", "0 0 30 2 *", "never within 366 days", "2026-07-01 00:00"},
		{"a tag", "@daily", "0 1 * * *", "2026-01-16 01:00", "2026-01-16 00:00"},
		{"gronx refuses it", "0 0 * * 7-2/2", "0 0 * * 7-2/2", "2026-01-18 00:00", "never within 366 days (step '7-2' out of bounds(0, 7))"},
	}
	now := time.Date(2026, 1, 15, 22, 59, 30, 0, time.UTC) // the last minute of a Thursday in Berlin
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, differ := misread(t, tt.says, tt.means).SecondOpinion(now, berlin)
			if want := (Difference{tt.here, tt.gronx}); !differ || d != want {
				t.Errorf("got %+v %t, want %+v", d, differ, want)
			}
		})
	}
}

// What is documented to be so is no difference: which days are meant where both
// day fields are restricted, what gronx's search does not find, the tags, and what
// happens when clocks change.
func TestSecondOpinionAgrees(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"30 2 * * *", "*/15 2 * * 0", "0 0 13 * 5", "0 0 */2 * 1", "0 0 15 * */2", "* * */21 * 3#3,4L", "0 0 29 2 *", "0 0 30 2 *",
		"0 0 L,15W * fri#2,1L", "0 0 * * 7", "0 0 * * 5-7", "\t0  9 * *\tmon", "* * * * 07/2", "0 0 * * 7-007", "0 0 * * 07-5",
		"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@Hourly", " @always ", "@5minutes", "@10minutes", "@15minutes", "@30minutes",
	} {
		for _, name := range []string{"UTC", "Europe/Berlin", "Pacific/Apia"} {
			if d, differ := compile(t, text).(*Crontab).SecondOpinion(now, zone(t, name)); differ {
				t.Errorf("%s in %s: %+v", text, name, d)
			}
		}
	}
	if _, differ := compile(t, "0 9 * * *").(*Crontab).SecondOpinion(now, nil); differ {
		t.Error("without a zone the readings differ")
	}
}

// A minute that is over is no difference any more, and instants that no calendar
// holds have an answer.
func TestSecondOpinionAtTheEdges(t *testing.T) {
	tab := misread(t, "0 9 1 1 *", "0 10 1 1 *")
	if d, differ := tab.SecondOpinion(time.Date(2026, 1, 1, 10, 1, 0, 0, time.UTC), nil); !differ || d.Here != "2027-01-01 10:00" {
		t.Errorf("after it: %+v %t", d, differ)
	}
	if d, differ := tab.SecondOpinion(time.Date(2024, 1, 1, 10, 1, 0, 0, time.UTC), nil); differ {
		t.Errorf("the next one is more than the days away that are compared: %+v", d)
	}
	every := compile(t, "0 0 * * 1-6").(*Crontab)
	for _, now := range []time.Time{{}, time.Unix(-1<<50, 0), time.Unix(civilEnd-90, 0), time.Unix(civilEnd, 0), time.Unix(1<<50, 0)} {
		if d, differ := every.SecondOpinion(now, nil); differ {
			t.Errorf("at %v: %+v", now, d)
		}
	}
}

// Of a long expression fewer days are compared, so that nobody makes a saving of
// it slow.
func TestSecondOpinionIsBounded(t *testing.T) {
	long := "0 0 * 2-12 " + strings.Repeat("1#1,", 240)
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	if d, differ := misread(t, long+"1#1", long+"1#2").SecondOpinion(now, nil); !differ || d.Here != "2026-02-09 00:00" {
		t.Errorf("a difference soon: %+v %t", d, differ)
	}
	if d, differ := misread(t, strings.Replace(long, "2-12", "6", 1)+"1#1", long+"1#1").SecondOpinion(now, nil); d.Gronx != "never within 41 days" {
		t.Errorf("a difference soon: %+v %t", d, differ)
	}
	if d, differ := misread(t, long+"1#1", long+"1#1").SecondOpinion(now, nil); differ {
		t.Errorf("no difference: %+v", d)
	}
}

// What gronx cannot read, or what makes it panic, does not fire, and the reason is
// there to be shown.
func TestReadByGronxSurvives(t *testing.T) {
	sound, broken := gronx.New(), &gronx.Gronx{}
	tests := []struct {
		g          *gronx.Gronx
		text, want string
	}{
		{sound, "0 0", "5-7 segments"},
		{sound, "0 0 * * 1/", "invalid syntax"},
		{broken, "0 0 * * 1", "panic: runtime error"},
	}
	for _, tt := range tests {
		r, err := readByGronx(tt.g, tt.text, 0, 3)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got the error %v, want one with %q", tt.text, err, tt.want)
		}
		if slices.Contains(r.days, true) {
			t.Errorf("%s fires: %+v", tt.text, r)
		}
	}
}
