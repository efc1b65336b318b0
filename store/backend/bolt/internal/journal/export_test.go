package journal

// ParseUnchecked is for fuzzing what salvage parses.
var ParseUnchecked = parseUnchecked

// Encode is for making files of other formats.
func (id Identity) Encode() []byte { return id.encode() }
