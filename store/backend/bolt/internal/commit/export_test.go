package commit

// Queued returns how many writes wait for a transaction.
func (q *Queue) Queued() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range q.groups {
		n += g.writes
	}
	return n
}
