package inflight

// Arrive takes a write's place among the writes, and gives it one among the arrivals, which have as
// many places. Another write is given up for that if need be; the new one is refused by [ErrBodies] if none
// gives way, or if the body of the other cannot be given up. A request without a place among the writes keeps
// what it has.
func (l *Limiter) Arrive(r Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *r.Place() != amongWrites {
		return nil
	}
	if l.arrivals.order.Len() >= l.limits.Writes {
		slowest := l.arrivals.slowest(r, patience)
		if slowest == nil || slowest.GiveUpBody() != nil {
			return ErrBodies
		}
		l.arrivals.drop(slowest)
	}
	l.giveBack(r)
	l.arrivals.add(r, 0)
	*r.Place() = amongArrivals
	return nil
}

// Arrived gives a write whose body was read its place among the writes again, or refuses it by a [FullError].
// If the body was given up, the error is [ErrGivenUp]. A write whose body could not be read keeps its
// place among the arrivals until it leaves, and its error is the reason.
func (l *Limiter) Arrived(r Request, why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.arrivals.has(r):
		return ErrGivenUp
	case why != nil:
		return why
	}
	l.giveBack(r)
	return l.enterWrites(r)
}
