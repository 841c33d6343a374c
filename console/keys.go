package console

// The keys that pages know. What they do is said by scripts and by the attributes data-key of
// templates.

// keyLine says what some keys do, one after the other. Key is that of the text.
type keyLine struct {
	Keys []string
	Key  string
}

// KeyLines are all keys, as the dialog lists them.
func (p *page) KeyLines() []keyLine {
	return []keyLine{
		{[]string{"/", "Ctrl-K"}, "keys.search"},
		{[]string{"g", "o"}, "keys.overview"},
		{[]string{"g", "j"}, "keys.jobs"},
		{[]string{"g", "r"}, "keys.runs"},
		{[]string{"g", "t"}, "keys.timetable"},
		{[]string{"g", "e"}, "keys.executors"},
		{[]string{"g", "c"}, "keys.changes"},
		{[]string{"j", "k"}, "keys.rows"},
		{[]string{"Enter"}, "keys.enter"},
		{[]string{"x"}, "keys.tick"},
		{[]string{"n"}, "keys.add"},
		{[]string{"e"}, "keys.edit"},
		{[]string{"t"}, "keys.once"},
		{[]string{"s"}, "keys.start"},
		{[]string{"f"}, "keys.follow"},
		{[]string{"."}, "keys.live"},
		{[]string{"?"}, "keys.list"},
		{[]string{"Esc"}, "keys.escape"},
	}
}
