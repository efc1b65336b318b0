// Package machine names this machine's processor, and measures how much others disturb a
// measurement:
//
//	WatchOthers ──▶ Others ──Share──▶ processors that other programs and machines had
//	Timers.Run  ──▶ Timers ──Late───▶ how late a timer came that nothing waits for
package machine
