// Package mishap is how storage that simulations put behind an engine goes wrong
// in what it hands to a watch: it loses a change, or brings one twice.
//
//	storage ── batch ──▶ Spoil ── the batch, or a spoilt one ──▶ engine
//	                       ▲
//	                    Mishaps: what is to happen, once
//
// The spoilt batch says the same of itself as the sound one, so that the engine
// has to notice by its events.
package mishap
