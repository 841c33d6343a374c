package executor

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestZoneOfARequest: the zone is the admin's by its name; where its data is missing, or the name
// means nothing here, the day is still right by the offset.
func TestZoneOfARequest(t *testing.T) {
	at := time.Date(2000, 1, 1, 4, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		offset int
		want   string
	}{
		{"", 0, "none"},
		{"America/New_York", -18000, "1999-12-31T23:30:00-05:00 America/New_York"},
		{"America/New_York", 0, "1999-12-31T23:30:00-05:00 America/New_York"}, // the data decides
		{"Mars/Olympus", -18000, "1999-12-31T23:30:00-05:00 Mars/Olympus"},
		{"Local", 28800, "2000-01-01T12:30:00+08:00 Local"},
		{"../../etc/passwd", 3600, "2000-01-01T05:30:00+01:00 ../../etc/passwd"},
		{"Mars/Olympus", 1 << 30, "2000-01-02T04:30:00+24:00 Mars/Olympus"},
		{string(make([]byte, 65)), 0, "none"},
	} {
		m, got := zones{}, "none"
		for range 2 { // read, and remembered
			if loc := m.of(&wire.TriggerRequest{Zone: tt.name, ZoneOffset: tt.offset}); loc != nil {
				got = at.In(loc).Format(time.RFC3339) + " " + loc.String()
			}
		}
		if got != tt.want || len(m) > 1 {
			t.Errorf("%q: %s, want %s", tt.name, got, tt.want)
		}
	}
	m := zones{}
	for i := range 3 * mostZones {
		m.of(&wire.TriggerRequest{Zone: fmt.Sprint("No/", i)})
	}
	if len(m) > mostZones {
		t.Errorf("%d zones are remembered", len(m))
	}
}
