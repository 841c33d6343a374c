package cron

import (
	"testing"
	"time"
)

func FuzzParse(f *testing.F) {
	for _, row := range readRows(f, "testdata/quartz_utc.tsv", 4)[:300] {
		f.Add(row[0], int64(1773000000))
	}
	f.Add("0 0 12 ? 2 SUN#5 2026-2199", int64(4e9))
	f.Add("0 30 2 31W * ?", int64(1325196000))
	zones := fuzzZones(f)
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		expr, err := Parse(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkAdvances(t, expr, unix, zones)
	})
}

func FuzzCrontab(f *testing.F) {
	for _, row := range readRows(f, "testdata/gitlab_crontab.tsv", 2) {
		f.Add(row[1], int64(1773000000))
	}
	f.Add("* * */21 * 3#3,4L", int64(1180821240))
	f.Add("0 0 29 2 1#5", int64(4e9))
	f.Add("0 0 31,1W,L */2 sun,7#2", int64(1325196000))
	for _, known := range gronxIsWrong {
		f.Add(known.expr, int64(1773000000))
	}
	f.Add("0 0 * * 07/2", int64(1773000000))
	f.Add("0 0 * * 7-007,007-5", int64(1773000000))
	zones := fuzzZones(f)
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		tab, err := ParseCrontab(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkAdvances(t, tab, unix, zones)
		if len(text) <= 200 { // gronx takes seconds for some that are longer
			againstGronx(t, tab, max(unix%civilEnd, 0)/60*60)
		}
	})
}

func fuzzZones(f *testing.F) (zones []*time.Location) {
	for _, name := range []string{"UTC", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia"} {
		zones = append(zones, zone(f, name))
	}
	return zones
}

func checkRefusal(t *testing.T, err error) {
	bad, ok := err.(*FieldError)
	if !ok || bad.Expr == "" && bad.Value != "0 fields" || bad.Expected == "" || len(bad.Error()) > 1000 {
		t.Errorf("refused with %#v", err)
		return
	}
	checkWords(t, bad)
}

// checkAdvances follows a schedule in several zones under both policies.
func checkAdvances(t *testing.T, s compiled, unix int64, zones []*time.Location) {
	if s.Describe() == "" {
		t.Errorf("%s: no description", s)
	}
	for _, loc := range zones {
		for _, policy := range []Policy{Civil, Quartz} {
			at := time.Unix(unix%(civilEnd+1000), 1)
			for range 3 {
				next := s.Next(at, loc, policy)
				if next.IsZero() {
					break
				}
				if !next.After(at) {
					t.Fatalf("%s in %s under %s: next after %v is %v", s, loc, policy, at, next)
				}
				if policy == Civil {
					if again := s.Next(next.Add(-1), loc, policy); !again.Equal(next) {
						t.Fatalf("%s in %s: next after %v is %v, but just before that it is %v", s, loc, at, next, again)
					}
				}
				at = next
			}
		}
	}
}

// FuzzSeconds: whatever six fields hold is compiled or refused in words, and what is compiled advances.
func FuzzSeconds(f *testing.F) {
	for _, row := range readRows(f, "testdata/robfig.tsv", 5)[:300] {
		f.Add(row[0], int64(1_900_000_000))
	}
	zones := fuzzZones(f)
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		c, err := ParseSeconds(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkAdvances(t, c, unix, zones)
	})
}
