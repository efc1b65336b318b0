package load

import "fmt"

func excess(s stretch, expected uint64) string {
	return fmt.Sprintf("saw %d events in revisions %d to %d, of which %d are for it", s.events, s.after+1, s.through, expected)
}

func others(s stretch) string {
	return fmt.Sprintf("saw as many events in revisions %d to %d as are for it, but others", s.after+1, s.through)
}
