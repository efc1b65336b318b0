package inflight

// Users returns how many users a limiter counts requests of.
func Users(l *Limiter) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := 0
	for _, s := range []share{l.reads, l.writes, l.watches, l.arrivals.users, l.departures.users, l.unadmitted.users} {
		all += len(s.byUser)
	}
	return all
}
