// Local development only: the cockpit at a port of its own. Wrangler gives HTTP to the first Worker of a process alone, which is
// the adapter, so this one runs in a second process and passes everything on.

export default { fetch: (request, env) => env.COCKPIT.fetch(request) };
