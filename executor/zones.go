package executor

import (
	"time"

	"github.com/xxljob/xxljob/wire"
)

// zones remembers the time zones of jobs. It is guarded by Executor.mu.
type zones map[zone]*time.Location

// zone is what an admin says of one: the offset tells where its data is missing here.
type zone struct {
	name   string
	offset int
}

// mostZones bounds what is remembered: there are some six hundred, at a few offsets each.
const mostZones = 4096

// of returns the zone of a request, nil where it has none.
func (m zones) of(req *wire.TriggerRequest) *time.Location {
	if req.Zone == "" || len(req.Zone) > 64 {
		return nil
	}
	key := zone{req.Zone, req.ZoneOffset}
	loc := m[key]
	if loc == nil {
		if len(m) >= mostZones {
			clear(m)
		}
		loc = loadZone(key)
		m[key] = loc
	}
	return loc
}

// loadZone reads the data of a zone. Where there is none a day is still the right one with the
// offset at the instant of the run. "Local" is where the admin is, and not here.
func loadZone(z zone) *time.Location {
	if z.name != "Local" {
		if loc, err := time.LoadLocation(z.name); err == nil {
			return loc
		}
	}
	return time.FixedZone(z.name, min(max(z.offset, -86400), 86400))
}
