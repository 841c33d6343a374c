package alarm

// Catalogue is the words of a language.
func Catalogue(l Language) (map[string]string, error) { return catalogueOf(l) }
