// Package usercode handles what an engine's user supplies: functions and loggers,
// which may panic, and settings, which may be wrong. [Call] and [Logger] contain a
// panic as a [*PanicError]. A wrong setting is a [*ConfigError]. [Each] calls a function
// for each item, even if it ends its goroutine for one of them.
//
//	handler, getter, transform ──▶ Call ──▶ panic ──▶ *PanicError ──▶ returned, logged, or the end of a watch
//	slog.Handler ──▶ Logger ──▶ panic ──▶ *PanicError ──▶ HostConfig.OnFailure
//	options ──▶ Validate ──▶ *ConfigError: which field is wrong, and what to write instead
package usercode
