package look

import "encoding/json"

// Settings are those of an account, by name: what its user has chosen, and what else is kept with it.
type Settings map[string]any

// SettingsIn are those in a text; what is none has no settings.
func SettingsIn(text string) Settings {
	all := Settings{}
	if text != "" {
		_ = json.Unmarshal([]byte(text), &all)
	}
	return all
}

// Text is what the store keeps.
func (s Settings) Text() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// Choose puts a choice in the place of the one before, beside what else is there.
func (s *Settings) Choose(ch Chosen) error {
	one, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	for _, name := range chosenNames {
		delete(*s, name)
	}
	return json.Unmarshal(one, s)
}
