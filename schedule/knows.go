package schedule

import "time"

// Knows counts what this release knows of schedules. It is raised with each type, DST policy or
// dialect that is new, so that of two nodes it is known which one knows more.
const Knows = 1

// HasZones reports whether this process has data of time zones, as it has not in an image without
// them, unless it brings them itself (time/tzdata).
func HasZones() bool {
	_, err := time.LoadLocation("Europe/Berlin")
	return err == nil
}
