package watcher

// Resumes reports whether the watch starts after a revision that it was given, with the
// changes since.
func (f From) Resumes() bool { return f.Revision > 0 && !f.State && f.Last == 0 }

// Now reports whether the watch may start at any snapshot that is new enough.
func (f From) Now() bool { return (f.State || f.Revision == 0) && f.Last == 0 }
