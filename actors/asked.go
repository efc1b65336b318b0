package actors

// runOrWake is wake for [Ref.Ask]: if the actor is idle and on a pool, it runs the turn of the caller's
// message, with which that batch of the inbox begins, before it returns. A [Blocking] executor has
// goroutines for turns that may block, and a [Seeded] one decides about the order.
func (q *queueBody) runOrWake(batch uint32) {
	if !q.markWork() {
		return
	}
	if pool, pooled := q.spec.exec.(*Pool); pooled {
		pool.ask(q, batch)
		return
	}
	q.submit()
}

// runAsked runs a turn of one message, the sender's own, unless a worker has handled that. What comes
// meanwhile, and all system messages, are left to the pool, so that the sender does not run user code
// for others.
func (q *queueBody) runAsked(batch uint32) {
	defer q.endTurn() // even if user code ends the goroutine
	if q.is(hasSystem) || !q.inbox.comesNext(batch) || !q.beginWork() {
		return
	}
	if q.work(1) && (q.inbox.len() > 0 || q.unflushed) {
		q.state.Or(hasWork)
	}
}

// askedTurn is a turn that a sender runs: see [Ref.Ask]. The pool's lock guards it.
type askedTurn struct {
	turn   *mailbox
	checks int // of the watchdog, since it has begun
}

// ask runs a turn of a scheduled actor in the calling goroutine, whose message that batch begins with.
// The watchdog watches it, and Close waits for it, as for one that a worker runs. Once Close has
// returned it does nothing.
func (p *Pool) ask(q *queueBody, batch uint32) {
	p.mu.Lock()
	if p.left == 0 {
		p.mu.Unlock()
		return
	}
	at := p.addAskedLocked((*mailbox)(&q.cell))
	defer p.removeAsked(at)
	defer q.runAsked(batch) // even if the clock ends the goroutine
	p.watchAndUnlock()
}

// addAskedLocked adds a turn, and returns where it is.
func (p *Pool) addAskedLocked(m *mailbox) (at int) {
	if p.asking == len(p.asked) {
		p.asked = append(p.asked, askedTurn{})
	}
	for p.asked[at].turn != nil {
		at++
	}
	p.asked[at].turn = m
	p.asking++
	return at
}

// removeAsked removes a turn that has ended. The workers of a pool that is being closed may wait
// for that.
func (p *Pool) removeAsked(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[at] = askedTurn{}
	p.asking--
	if p.closed && p.asking == 0 {
		p.work.Broadcast()
		p.parked = 0
	}
}

// checkAskedLocked is the part of checkLocked about turns that senders run.
func (p *Pool) checkAskedLocked() (busy, late bool, held []*mailbox) {
	for i := range p.asked {
		a := &p.asked[i]
		if a.turn == nil {
			continue
		}
		busy = true
		a.checks++ // the first is as early as the one that marks a worker
		late = late || a.checks > checksPerLimit
		if a.checks == checksPerLimit+1 {
			held = append(held, a.turn)
		}
	}
	return busy, late, held
}
