package commit

// IsClosing reports whether Close waits for the turn, or has had it.
func (q *Queue) IsClosing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closer != nil
}
