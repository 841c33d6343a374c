package peer;

/** What differs between the versions of the library: there is one class {@code peer.Version} for each generation. */
interface Library {
    /** Starts an executor with all handlers. */
    void start(Settings settings, Scenarios scenarios) throws Exception;

    /** Ends it, with its registration. */
    void stop();

    /**
     * Calls an executor as the admin of this version does, or, with 3.5, an admin as its client for jobs does: the
     * request, where there is one, and the answer are JSON. Only 3.5 says the app.
     */
    String call(String address, String app, String token, String endpoint, String request) throws Exception;
}
