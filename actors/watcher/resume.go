package watcher

// Resumes reports whether the watch starts after a revision that it was given, with the
// changes since.
func (f From) Resumes() bool { return f.Revision > 0 && !f.State && f.Last == 0 }
