/** Path of the admin API on its listener. */
export const ADMIN_BASE = '/admin/api/v1'
